"""The usual engine: Graphviz ``dot`` in this process, on one flat scope."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

from torchlens.drawing.layout.placed import Point
from torchlens.drawing.layout.problem import (
    BORDER,
    Item,
    Problem,
    Solution,
    anchor_in,
    anchor_out,
    straight,
)
from torchlens.drawing.layout.ranks import Ranking
from torchlens.drawing.layout.straighten import straighten

_LOCK = Lock()
_TABLE = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">'


class GraphvizError(RuntimeError):
    """Graphviz reported a failure on a layout that it should manage."""


@lru_cache(maxsize=1)
def _context() -> Any:
    from pygraphviz import graphviz

    return graphviz.gvContextWithBuiltins()


def run_dot(source: str) -> dict[str, Any]:
    """Lay out DOT text and return Graphviz' own JSON; one call at a time, as Graphviz demands."""
    from pygraphviz import graphviz

    with _LOCK, TemporaryFile() as file:
        file.write(source.encode("ascii"))
        file.seek(0)
        graph = graphviz.agread(file, None)
        failed = graphviz.gvLayout(_context(), graph, b"dot")
        status, data = graphviz.gvRenderData(_context(), graph, b"json0")
        graphviz.gvFreeLayout(_context(), graph)
        graphviz.agclose(graph)
    if failed or status:
        raise GraphvizError(f"dot ended with status {failed or status}")
    result: dict[str, Any] = json.loads(data)
    return result


def solve(problem: Problem, ranking: Ranking) -> Solution:
    """Lay out one scope with ``dot``; curves of segments that do not run forward stay empty."""
    laid = run_dot(_source(problem, ranking))
    high = float(laid["bb"].split(",")[3])
    centers: dict[str, Point] = {}
    for entry in laid["objects"]:
        if "pos" in entry:
            x, y = entry["pos"].split(",")
            centers[entry["name"]] = float(x), high - float(y)
    corners = []
    for number, item in enumerate(problem.items):
        x, y = centers[f"n{number}"]
        corners.append((x - item.width / 2, y - item.height / 2))
    solution = Solution(
        float(laid["bb"].split(",")[2]),
        high,
        corners,
        [centers[f"i{k}"][0] for k in range(problem.entries)],
        [centers[f"o{k}"][0] for k in range(problem.exits)],
        [[] for _ in problem.segments],
    )
    drawn = [e for e in laid.get("edges", ()) if "seg" in e]
    curves = [(int(entry["seg"]), _points(entry["pos"], high)) for entry in drawn]
    ranking = _as_laid(problem, solution, ranking)
    straighten(problem, solution, ranking, curves)
    for number, curve in curves:
        near = ranking.span(problem.segments[number]) == 1
        solution.curves[number] = _snapped(curve, problem, solution, number, near)
    return solution


def _as_laid(problem: Problem, solution: Solution, ranking: Ranking) -> Ranking:
    """Return the ranking with the levels that ``dot`` chose."""
    middles = [round(y + i.height / 2) for i, (_, y) in zip(problem.items, solution.corners, strict=True)]
    level: dict[int, int] = {}
    last = count = -1
    for middle in sorted(set(middles)):
        count += middle - last > 2 or count < 0
        level[middle] = count
        last = middle
    return replace(ranking, levels=tuple(level[middle] for middle in middles))


def _points(text: str, high: float) -> list[Point]:
    pairs = (part.split(",") for part in text.split())
    return [(float(x), high - float(y)) for x, y in pairs]


def _snapped(
    curve: list[Point], problem: Problem, solution: Solution, number: int, near: bool
) -> list[Point]:
    """Make a curve start and end exactly at its attachment points, along the flow.

    Between them it stays: ``dot`` swings far out of the gap where it has to go far across.
    """
    segment = problem.segments[number]
    start = anchor_out(problem, solution, segment.tail)
    end = anchor_in(problem, solution, segment.head)
    if start[0] == end[0] and (near or all(abs(x - start[0]) < 4 for x, _ in curve)):
        return [start, *straight(start, end)]
    curve = [(x, min(max(y, start[1]), end[1])) for x, y in curve]
    return [start, (start[0], curve[1][1]), *curve[2:-2], (end[0], curve[-2][1]), end]


def _source(problem: Problem, ranking: Ranking) -> str:
    lines = [
        "digraph{graph[nslimit=2 newrank=true"
        f" ranksep={problem.rank_gap / 72:.4f} nodesep={problem.item_gap / 72:.4f}]",
        'node[shape=box fixedsize=true label=""]edge[arrowhead=none]',
    ]
    lines += [_node(number, item) for number, item in enumerate(problem.items)]
    for kind, letter, count in (("source", "i", problem.entries), ("sink", "o", problem.exits)):
        if count:
            ports = "".join(f"{letter}{k}[width=0.01 height=0.001]" for k in range(count))
            lines.append(f"{{rank={kind} {ports}}}")
    lines += _off_the_border(problem, ranking)
    for number, segment in enumerate(problem.segments):
        if ranking.kinds[number] == "forward":
            tail = _end(problem, segment.tail, "i", "s")
            head = _end(problem, segment.head, "o", "n")
            lines.append(f"{tail}->{head}[seg={number}{' weight=4' if ranking.main[number] else ''}]")
    return "\n".join([*lines, "}"])


def _off_the_border(problem: Problem, ranking: Ranking) -> list[str]:
    """Keep items without neighbours above or below off the levels of the border's ports."""
    forward = [s for s, kind in zip(problem.segments, ranking.kinds, strict=True) if kind == "forward"]
    fed, used = {s.head[0] for s in forward}, {s.tail[0] for s in forward}
    hidden = "[style=invis weight=0]"
    lines = []
    for number in range(len(problem.items)):
        if problem.entries and number not in fed:
            lines.append(f"i0->n{number}{hidden}")
        if problem.exits and number not in used:
            lines.append(f"n{number}->o0{hidden}")
    return lines


def _plain(item: Item) -> bool:
    middle = (item.width / 2,)
    return item.ins in ((), middle) and item.outs in ((), middle)


def _end(problem: Problem, end: tuple[int, int], letter: str, side: str) -> str:
    number, port = end
    if number == BORDER:
        return f"{letter}{port}:{side}"
    if _plain(problem.items[number]):
        return f"n{number}:{side}"
    return f"n{number}:{'p' if side == 'n' else 'q'}{port}:{side}"


def _node(number: int, item: Item) -> str:
    if _plain(item):
        return f"n{number}[width={item.width / 72:.6f} height={item.height / 72:.6f}]"
    edge = 2
    middle = (
        f'<TR><TD FIXEDSIZE="TRUE" WIDTH="{item.width:.0f}" HEIGHT="{item.height - 2 * edge:.0f}"></TD></TR>'
    )
    label = f"<{_TABLE}{_cells(item, item.ins, 'p')}{middle}{_cells(item, item.outs, 'q')}</TABLE>>"
    return f"n{number}[shape=plain fixedsize=false margin=0 label={label}]"


def _cells(item: Item, ports: tuple[float, ...], letter: str) -> str:
    """Return a row of the table that stands for a box, with a cell centred on every port."""
    cells, x = [], 0
    for place in sorted(set(ports)):
        start = round(place) - 1
        names = [k for k, port in enumerate(ports) if port == place]
        if start > x:
            cells.append(_cell(start - x, ""))
        cells.append(_cell(2, f' PORT="{letter}{names[0]}"'))
        x = start + 2
    if item.width > x:
        cells.append(_cell(round(item.width) - x, ""))
    return f"<TR><TD>{_TABLE}<TR>{''.join(cells)}</TR></TABLE></TD></TR>"


def _cell(width: int, port: str) -> str:
    return f'<TD FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="2"{port}></TD>'
