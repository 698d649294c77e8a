"""One scope in layers: levels from :mod:`ranks`, order from :mod:`order`, then places and curves.

Positions across the flow come from four aligned block layouts (Brandes and Köpf, 2002, with sizes and
ports).  Every step is linear or sorts, so a scope of tens of thousands of items takes seconds.
"""

from __future__ import annotations

import math

from torchlens.drawing.layout.coordinates import assign_x
from torchlens.drawing.layout.layers import Layers, columns_of, layers_of
from torchlens.drawing.layout.order import MAIN, orders
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

BEND_GAP = 9.0
BORDER_GAP = 13.0
"""Length of straight lines between a border and the first or last items."""
BORDER_SWING = 20.0
CROSSING = 50.0
"""How many points of detour a crossing is worth."""


def solve(problem: Problem, ranking: Ranking) -> Solution:
    """Lay out one scope; curves of segments that do not run forward stay empty."""
    columns = columns_of(problem, ranking)
    layers = layers_of(problem, ranking, columns)
    x = _on_whole_points(problem, layers, _best_places(layers, columns, problem.item_gap))
    _within_reach(layers, x, problem.reach)
    rows = _rows_y(problem, ranking, layers, x)
    count, first_exit = len(problem.items), len(problem.items) + problem.entries
    solution = Solution(
        max((x[v] + layers.width[v] / 2 for v in range(len(x))), default=0.0),
        rows[-1][1] if rows else 0.0,
        [],
        x[count:first_exit],
        x[first_exit : first_exit + problem.exits],
        [[] for _ in problem.segments],
    )
    for number, item in enumerate(problem.items):
        top, bottom = rows[layers.level[number]]
        solution.corners.append((x[number] - item.width / 2, (top + bottom - item.height) / 2))
    for number, bends in layers.chains.items():
        stops = [(x[v], *rows[layers.level[v]]) for v in bends]
        solution.curves[number] = _curve(problem, solution, number, stops, (rows, layers.level))
    return solution


def _best_places(layers: Layers, columns: list[list[int]], gap: float) -> list[float]:
    """Place the vertices across the flow, in the order that makes lines short, straight and untangled."""
    best: tuple[float, list[list[int]], list[float]] | None = None
    found = orders(layers, columns)
    for crossed, rows in found:
        layers.rows = rows
        x = assign_x(layers, gap, BEND_GAP)
        cost = CROSSING * crossed + (_sideways(layers, x) if len(found) > 1 else 0.0)
        if best is None or cost < best[0]:
            best = cost, rows, x
    assert best is not None
    layers.rows = best[1]
    return best[2]


def _sideways(layers: Layers, x: list[float]) -> float:
    """Return how far all lines go across the flow, main lines counted heavily."""
    return sum(
        (MAIN if main else 1) * abs(x[v] + here - x[other] - there)
        for v, links in enumerate(layers.down)
        for other, here, there, main in links
    )


def _on_whole_points(problem: Problem, layers: Layers, x: list[float]) -> list[float]:
    """Start at 0 and put every port on a whole point, so that lines between aligned ports are straight."""
    left = min((a - wide / 2 for a, wide in zip(x, layers.width, strict=True)), default=0.0)
    places = []
    for vertex, (middle, wide) in enumerate(zip(x, layers.width, strict=True)):
        port = 0.0
        if vertex < len(problem.items):
            item = problem.items[vertex]
            ports = item.ins or item.outs
            port = ports[0] - wide / 2 if ports else 0.0
        places.append(math.floor(middle - left + port + 0.5) - port)
    return places


def _within_reach(layers: Layers, x: list[float], reach: float) -> None:
    """Move the first layers, as far as they are narrow, so that the start stands within reach."""
    shift = 0.0
    for number, row in enumerate(layers.rows):
        left = min((x[v] - layers.width[v] / 2 for v in row), default=0.0)
        right = max((x[v] + layers.width[v] / 2 for v in row), default=0.0)
        if number == 0:
            shift = float(math.ceil(max(0.0, right - reach)))
        if not shift or left < shift:
            return
        for v in row:
            x[v] -= shift


def _rows_y(problem: Problem, ranking: Ranking, layers: Layers, x: list[float]) -> list[tuple[float, float]]:
    """Return top and bottom of every layer; a gap is as high as its lines and their texts need."""
    count = len(problem.items)
    rows: list[tuple[float, float]] = []
    gaps = _gaps(problem, ranking, layers, x)
    y = 0.0
    for row, gap in zip(layers.rows, gaps, strict=True):
        high = max((problem.items[v].height for v in row if v < count), default=0.0)
        rows.append((y, y + high))
        y += high + gap
    return rows


def _gaps(problem: Problem, ranking: Ranking, layers: Layers, x: list[float]) -> list[float]:
    """Return the height of the gap under every layer."""
    gaps = [problem.rank_gap] * len(layers.rows)
    last = len(gaps) - 2
    if problem.entries and last >= 0:
        gaps[0] = BORDER_GAP if _all_straight(layers, layers.rows[0], x) else BORDER_SWING
    if problem.exits and last >= (1 if problem.entries else 0):
        gaps[last] = BORDER_GAP if _all_straight(layers, layers.rows[last], x) else BORDER_SWING
    offset = 1 if problem.entries else 0
    for number, behind, before in problem.texts:
        if ranking.kinds[number] == "forward":
            segment = problem.segments[number]
            tail = 0 if segment.tail[0] == BORDER else ranking.levels[segment.tail[0]] + offset
            head = last + 1 if segment.head[0] == BORDER else ranking.levels[segment.head[0]] + offset
            gaps[tail] = max(gaps[tail], behind)
            gaps[head - 1] = max(gaps[head - 1], before)
    return gaps


def _all_straight(layers: Layers, row: list[int], x: list[float]) -> bool:
    return all(
        abs(x[v] + here - x[other] - there) < 0.01 for v in row for other, here, there, _ in layers.down[v]
    )


def _curve(
    problem: Problem,
    solution: Solution,
    number: int,
    bends: list[tuple[float, float, float]],
    places: tuple[list[tuple[float, float]], list[int]],
) -> list[Point]:
    """Draw a segment: straight through layers, swinging only in the gaps between them."""
    rows, level = places
    segment = problem.segments[number]
    start = anchor_out(problem, solution, segment.tail)
    end = anchor_in(problem, solution, segment.head)
    if start[0] == end[0] and all(x == start[0] for x, _, _ in bends):
        return [start, *straight(start, end)]
    stops = []
    if segment.tail[0] != BORDER:
        stops.append((start[0], start[1], rows[level[segment.tail[0]]][1]))
    stops += bends
    if segment.head[0] != BORDER:
        stops.append((end[0], rows[level[segment.head[0]]][0], end[1]))
    else:
        stops.append((end[0], end[1], end[1]))
    return _through(start, stops)


def _through(start: Point, stops: list[tuple[float, float, float]]) -> list[Point]:
    """Lead a line down through ``(x, top, bottom)`` stretches; what lies in line becomes one piece."""
    curve, x, y = [start], *start
    reached = y
    for place, top, bottom in stops:
        if abs(place - x) > 0.05:
            if reached > y + 0.01:
                curve += straight((x, y), (x, reached))
            curve += swing((x, reached), (place, top))
            x, y = place, top
        reached = bottom
    if reached > y + 0.01:
        curve += straight((x, y), (x, reached))
    return curve
