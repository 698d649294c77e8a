"""The layers of one scope: items, border ports and bends of long lines, row by row."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from torchlens.drawing.layout.problem import BORDER, Problem
from torchlens.drawing.layout.ranks import Ranking

BEND_WIDTH = 1.0

Link = tuple[int, float, float, bool]


@dataclass(slots=True)
class Layers:
    """Vertices (items, border ports, bends of long lines) in layers, with links between neighbours.

    A link is ``(other vertex, port here, port there, main)``, ports measured from the vertex' middle;
    main links are to run straight.  ``chains`` holds the bends of every forward segment.
    """

    rows: list[list[int]] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    up: list[list[Link]] = field(default_factory=list)
    down: list[list[Link]] = field(default_factory=list)
    bend: list[bool] = field(default_factory=list)
    level: list[int] = field(default_factory=list)
    chains: dict[int, list[int]] = field(default_factory=dict)

    def add(self, row: int, width: float, *, bend: bool = False) -> int:
        """Add a vertex to a layer."""
        self.width.append(width)
        self.up.append([])
        self.down.append([])
        self.bend.append(bend)
        self.level.append(row)
        self.rows[row].append(len(self.width) - 1)
        return len(self.width) - 1

    def link(self, tail: tuple[int, float], head: tuple[int, float], *, main: bool) -> None:
        """Join vertices of neighbouring layers, given with their ports."""
        self.down[tail[0]].append((head[0], tail[1], head[1], main))
        self.up[head[0]].append((tail[0], head[1], tail[1], main))


def layers_of(problem: Problem, ranking: Ranking, columns: list[list[int]]) -> Layers:
    """Build the layers; vertices are the items, then entries, then exits, then bends."""
    layers = Layers()
    offset = 1 if problem.entries else 0
    total = ranking.depth + offset + (1 if problem.exits else 0)
    layers.rows = [[] for _ in range(total)]
    for number, item in enumerate(problem.items):
        layers.add(ranking.levels[number] + offset, item.width)
    for _ in range(problem.entries):
        layers.add(0, BEND_WIDTH)
    for _ in range(problem.exits):
        layers.add(total - 1, BEND_WIDTH)
    for number, kind in enumerate(ranking.kinds):
        if kind == "forward":
            _add_segment(layers, problem, ranking, number)
    for before, after in itertools.pairwise(columns):
        if ranking.levels[after[0]] == ranking.levels[before[0]] + 1:
            for tail, head in zip(before, after, strict=False):
                layers.link((tail, 0.0), (head, 0.0), main=True)
    return layers


def _add_segment(layers: Layers, problem: Problem, ranking: Ranking, number: int) -> None:
    """Add the bends and links of a forward segment."""
    count = len(problem.items)
    (tail, out), (head, into) = problem.segments[number].tail, problem.segments[number].head
    start = count + out if tail == BORDER else tail
    end = count + problem.entries + into if head == BORDER else head
    bends = [
        layers.add(row, BEND_WIDTH, bend=True) for row in range(layers.level[start] + 1, layers.level[end])
    ]
    leave = 0.0 if tail == BORDER else problem.items[tail].outs[out] - problem.items[tail].width / 2
    enter = 0.0 if head == BORDER else problem.items[head].ins[into] - problem.items[head].width / 2
    main = ranking.main[number] and (head == BORDER or problem.items[head].column is None)
    path = [start, *bends, end]
    for k, (a, b) in enumerate(itertools.pairwise(path)):
        above, below = (a, leave if k == 0 else 0.0), (b, enter if k == len(path) - 2 else 0.0)
        layers.link(above, below, main=main)
    layers.chains[number] = bends


def columns_of(problem: Problem, ranking: Ranking) -> list[list[int]]:
    """Return the items of every column that shares a level, in flow order."""
    columns: dict[tuple[int, int], list[int]] = {}
    for number, item in enumerate(problem.items):
        if item.column is not None:
            columns.setdefault((ranking.levels[number], item.column), []).append(number)
    return [members for _, members in sorted(columns.items())]
