"""Removes the small jogs that rounding leaves in chains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from torchlens.drawing.layout.passing import Passing
from torchlens.drawing.layout.placed import Point
from torchlens.drawing.layout.problem import BORDER, Problem, Solution, anchor_in, anchor_out
from torchlens.drawing.layout.ranks import Ranking

NUDGE = 14.0
"""Items move at most this far to stand exactly over or under their neighbour."""
LEAST_GAP = 12.0
PORT_GAP = 8.0


def straighten(
    problem: Problem, solution: Solution, ranking: Ranking, curves: Iterable[tuple[int, list[Point]]]
) -> None:
    """Put items exactly in line that all but are, and everything on whole points across the flow.

    Items do not move into the ``curves`` of lines that pass them.
    """
    passing = Passing()
    for number, curve in curves:
        if ranking.span(problem.segments[number]) > 1:
            passing.add(curve, number)
    solution.corners = [(float(round(x)), y) for x, y in solution.corners]
    rows = _rows(problem, solution)
    above, below = _links(problem, ranking)
    order = sorted(range(len(problem.items)), key=lambda k: ranking.levels[k])
    for item in order:
        if len(above[item]) == 1 and problem.segments[above[item][0]].tail[0] != BORDER:
            segment = problem.segments[above[item][0]]
            target = anchor_out(problem, solution, segment.tail)[0]
            by = target - anchor_in(problem, solution, segment.head)[0]
            _move(problem, solution, (rows, passing), item, by)
    for item in reversed(order):
        alone = not above[item] or problem.segments[above[item][0]].tail[0] == BORDER
        if alone and len(below[item]) == 1 and problem.segments[below[item][0]].head[0] != BORDER:
            segment = problem.segments[below[item][0]]
            target = anchor_in(problem, solution, segment.head)[0]
            by = target - anchor_out(problem, solution, segment.tail)[0]
            _move(problem, solution, (rows, passing), item, by)
    _align_ports(problem, solution)


def _links(problem: Problem, ranking: Ranking) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    above: dict[int, list[int]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    for number, segment in enumerate(problem.segments):
        if ranking.kinds[number] == "forward":
            below[segment.tail[0]].append(number)
            above[segment.head[0]].append(number)
    return above, below


def _rows(problem: Problem, solution: Solution) -> dict[int, tuple[int | None, int | None]]:
    """Return the left and right neighbour of every item on its level."""
    rows: dict[int, list[int]] = defaultdict(list)
    for number, (item, (_, y)) in enumerate(zip(problem.items, solution.corners, strict=True)):
        rows[round((y + item.height / 2) / 2)].append(number)
    near: dict[int, tuple[int | None, int | None]] = {}
    for row in rows.values():
        row.sort(key=lambda k: solution.corners[k][0])
        for place, item_number in enumerate(row):
            left = row[place - 1] if place else None
            right = row[place + 1] if place + 1 < len(row) else None
            near[item_number] = (left, right)
    return near


def _move(
    problem: Problem,
    solution: Solution,
    around: tuple[dict[int, tuple[int | None, int | None]], Passing],
    item: int,
    by: float,
) -> None:
    """Move an item across the flow, unless something stands or passes there."""
    rows, passing = around
    x, y = solution.corners[item]
    size = problem.items[item].width, problem.items[item].height
    if not by or abs(by) > NUDGE or passing.near((x + by, y), size):
        return
    left, right = rows[item]
    if left is not None:
        edge = solution.corners[left][0] + problem.items[left].width
        if x + by < edge + LEAST_GAP:
            return
    if right is not None and x + by + problem.items[item].width > solution.corners[right][0] - LEAST_GAP:
        return
    solution.corners[item] = (x + by, y)


def _align_ports(problem: Problem, solution: Solution) -> None:
    """Put ports of the border exactly over the item that they all but face."""
    for segment in problem.segments:
        if segment.back:
            continue
        if segment.tail[0] == BORDER != segment.head[0]:
            x = anchor_in(problem, solution, segment.head)[0]
            _align_port(solution.entry_x, segment.tail[1], x)
        if segment.head[0] == BORDER != segment.tail[0]:
            x = anchor_out(problem, solution, segment.tail)[0]
            _align_port(solution.exit_x, segment.head[1], x)


def _align_port(ports: list[float], port: int, x: float) -> None:
    others = (other for k, other in enumerate(ports) if k != port)
    if abs(ports[port] - x) <= NUDGE and all(abs(other - x) >= PORT_GAP for other in others):
        ports[port] = x
