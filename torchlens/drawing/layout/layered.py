"""The engine for scopes too large for ``dot``: layers, a few sweeps, and straight chains.

Layers come from :mod:`ranks`; the order within a layer from barycentre sweeps; positions across the
flow from four aligned block layouts (Brandes and Köpf, 2002, with sizes and ports).  Every step is
linear or sorts, so a scope of tens of thousands of items takes seconds.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from torchlens.drawing.layout.coordinates import Link, assign_x
from torchlens.drawing.layout.placed import Point
from torchlens.drawing.layout.problem import (
    BORDER,
    Problem,
    Solution,
    anchor_in,
    anchor_out,
    straight,
    swing,
)
from torchlens.drawing.layout.ranks import Ranking

SWEEPS = 4
BEND_WIDTH = 1.0
BEND_GAP = 9.0


@dataclass(slots=True)
class Layers:
    """Vertices (items, border ports, bends of long lines) in layers, with links between neighbours.

    A link is ``(other vertex, port here, port there, main)``, ports measured from the vertex' middle;
    main links are to run straight.
    """

    rows: list[list[int]] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    up: list[list[Link]] = field(default_factory=list)
    down: list[list[Link]] = field(default_factory=list)
    bend: list[bool] = field(default_factory=list)

    def add(self, row: int, width: float, *, bend: bool = False) -> int:
        """Add a vertex to a layer."""
        self.width.append(width)
        self.up.append([])
        self.down.append([])
        self.bend.append(bend)
        self.rows[row].append(len(self.width) - 1)
        return len(self.width) - 1

    def link(self, tail: tuple[int, float], head: tuple[int, float], *, main: bool) -> None:
        """Join vertices of neighbouring layers, given with their ports."""
        self.down[tail[0]].append((head[0], tail[1], head[1], main))
        self.up[head[0]].append((tail[0], head[1], tail[1], main))


def solve(problem: Problem, ranking: Ranking) -> Solution:
    """Lay out one scope; curves of segments that do not run forward stay empty."""
    layers, chains = _layers(problem, ranking)
    _sort_rows(layers, _columns(problem, ranking))
    middle = assign_x(layers, problem.item_gap, BEND_GAP)
    count = len(problem.items)
    left = min((middle[v] - layers.width[v] / 2 for v in range(len(middle))), default=0.0)
    middle = [round(x - left, 2) for x in middle]
    tops, heights = _rows_y(problem, layers)
    level = {v: k for k, row in enumerate(layers.rows) for v in row}
    corners = []
    for number, item in enumerate(problem.items):
        row = level[number]
        y = tops[row] + (heights[row] - item.height) / 2
        corners.append((middle[number] - item.width / 2, y))
    solution = Solution(
        max((middle[v] + layers.width[v] / 2 for v in range(len(middle))), default=0.0),
        tops[-1] + heights[-1] if tops else 0.0,
        corners,
        middle[count : count + problem.entries],
        middle[count + problem.entries : count + problem.entries + problem.exits],
        [[] for _ in problem.segments],
    )
    for number, bends in chains.items():
        rows = [(middle[v], tops[level[v]], tops[level[v]] + heights[level[v]]) for v in bends]
        solution.curves[number] = _curve(problem, solution, number, rows, (tops, heights, level))
    return solution


def _layers(problem: Problem, ranking: Ranking) -> tuple[Layers, dict[int, list[int]]]:
    """Build the layers and, for each forward segment, its chain of bends."""
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
    count, chains = len(problem.items), {}
    for number, segment in enumerate(problem.segments):
        if ranking.kinds[number] != "forward":
            continue
        (tail, out), (head, into) = segment.tail, segment.head
        start = count + out if tail == BORDER else tail
        end = count + problem.entries + into if head == BORDER else head
        first = 0 if tail == BORDER else ranking.levels[tail] + offset
        last = total - 1 if head == BORDER else ranking.levels[head] + offset
        bends = [layers.add(row, BEND_WIDTH, bend=True) for row in range(first + 1, last)]
        leave = 0.0 if tail == BORDER else problem.items[tail].outs[out] - problem.items[tail].width / 2
        enter = 0.0 if head == BORDER else problem.items[head].ins[into] - problem.items[head].width / 2
        path = [start, *bends, end]
        head_column = None if head == BORDER else problem.items[head].column
        for k, (a, b) in enumerate(itertools.pairwise(path)):
            above, below = (a, leave if k == 0 else 0.0), (b, enter if k == len(path) - 2 else 0.0)
            layers.link(above, below, main=ranking.main[number] and head_column is None)
        chains[number] = bends
    _line_up(problem, ranking, layers)
    return layers, chains


def _line_up(problem: Problem, ranking: Ranking, layers: Layers) -> None:
    """Tie the items of a column to those in the same place of the column before."""
    columns = _columns(problem, ranking)
    for before, after in itertools.pairwise(columns):
        if ranking.levels[after[0]] == ranking.levels[before[0]] + 1:
            for tail, head in zip(before, after, strict=False):
                layers.link((tail, 0.0), (head, 0.0), main=True)


def _columns(problem: Problem, ranking: Ranking) -> list[list[int]]:
    """Return the items of every column that shares a level, in flow order."""
    columns: dict[tuple[int, int], list[int]] = {}
    for number, item in enumerate(problem.items):
        if item.column is not None:
            columns.setdefault((ranking.levels[number], item.column), []).append(number)
    return [members for _, members in sorted(columns.items())]


def _rows_y(problem: Problem, layers: Layers) -> tuple[list[float], list[float]]:
    tops, heights, y = [], [], 0.0
    for row in layers.rows:
        high = max((problem.items[v].height for v in row if v < len(problem.items)), default=0.0)
        tops.append(y)
        heights.append(high)
        y += high + problem.rank_gap
    return tops, heights


def _curve(
    problem: Problem,
    solution: Solution,
    number: int,
    bends: list[tuple[float, float, float]],
    rows: tuple[list[float], list[float], dict[int, int]],
) -> list[Point]:
    """Draw a segment: straight through layers, swinging only in the gaps between them."""
    tops, heights, level = rows
    segment = problem.segments[number]
    start = anchor_out(problem, solution, segment.tail)
    end = anchor_in(problem, solution, segment.head)
    stops = []
    if segment.tail[0] != BORDER:
        row = level[segment.tail[0]]
        stops.append((start[0], start[1], tops[row] + heights[row]))
    stops += bends
    if segment.head[0] != BORDER:
        stops.append((end[0], tops[level[segment.head[0]]], end[1]))
    curve = [start]
    for x, top, bottom in stops:
        if top > curve[-1][1] + 0.01:
            curve += _step(curve[-1], (x, top))
        if bottom > curve[-1][1] + 0.01:
            curve += straight(curve[-1], (x, bottom))
    if end != curve[-1]:
        curve += _step(curve[-1], end)
    return _merged(curve)


def _step(start: Point, end: Point) -> list[Point]:
    return straight(start, end) if abs(start[0] - end[0]) < 0.05 else swing(start, end)


def _merged(curve: list[Point]) -> list[Point]:
    """Join straight pieces that continue each other."""
    if all(abs(x - curve[0][0]) < 0.05 for x, _ in curve):
        end = (curve[0][0], curve[-1][1])
        return [curve[0], *straight(curve[0], end)]
    return curve


def _sort_rows(layers: Layers, columns: list[list[int]]) -> None:
    """Order every layer by the mean place of its neighbours, and keep the order with fewest crossings."""
    column_of = {v: members for members in columns for v in members}
    best, fewest = [list(row) for row in layers.rows], _crossings(layers)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        downward = sweep % 2 == 0
        links = layers.up if downward else layers.down
        place = {v: float(k) for row in layers.rows for k, v in enumerate(row)}
        for row in layers.rows if downward else reversed(layers.rows):
            row.sort(key=lambda v: _mean(links[v], place, layers.width, place[v]))
            _in_flow_order(row, column_of)
            for k, v in enumerate(row):
                place[v] = float(k)
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(row) for row in layers.rows], crossings
    layers.rows = best


def _in_flow_order(row: list[int], column_of: dict[int, list[int]]) -> None:
    """Put the items of a column in flow order, on the places that they hold in the layer."""
    for members in {id(c): c for c in (column_of.get(v) for v in row) if c}.values():
        places = sorted(row.index(v) for v in members)
        for place, v in zip(places, members, strict=True):
            row[place] = v


def _mean(links: list[Link], place: dict[int, float], width: list[float], own: float) -> float:
    if not links:
        return own
    return sum(place[v] + there / (width[v] + 1) for v, _, there, _ in links) / len(links)


def _crossings(layers: Layers) -> int:
    """Count crossings between neighbouring layers with a binary indexed tree."""
    total = 0
    for row, below in zip(layers.rows, layers.rows[1:], strict=False):
        place = {v: k for k, v in enumerate(below)}
        heads = [
            place[v]
            for u in row
            for v, *_ in sorted(layers.down[u], key=lambda link: (link[1], place[link[0]]))
        ]
        total += _inversions(heads, len(below))
    return total


def _inversions(values: list[int], size: int) -> int:
    tree, total = [0] * (size + 1), 0
    for seen, value in enumerate(values):
        k, before = value + 1, 0
        while k:
            before += tree[k]
            k &= k - 1
        total += seen - before
        k = value + 1
        while k <= size:
            tree[k] += 1
            k += k & -k
    return total
