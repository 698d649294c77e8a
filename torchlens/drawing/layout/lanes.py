"""Lines that do not run down through the layers: recurrence round the side, and arcs within a layer."""

from __future__ import annotations

from bisect import bisect_left

from torchlens.drawing.layout.placed import Point
from torchlens.drawing.layout.problem import (
    BORDER,
    Problem,
    Segment,
    Solution,
    anchor_in,
    anchor_out,
    straight,
)
from torchlens.drawing.layout.ranks import Ranking

LANE_GAP = 9.0
FIRST_LANE = 11.0
LEAVE = 8.0
CORNER = 7.0
MOST_LANES = 40

Extent = tuple[float, float, float, float]


def route(problem: Problem, solution: Solution, ranking: Ranking) -> None:
    """Give every segment that does not run forward its curve."""
    odd = [n for n, kind in enumerate(ranking.kinds) if kind != "forward"]
    if not odd:
        return
    rows = level_rows(problem, solution)
    used: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    for number in odd:
        segment = problem.segments[number]
        if ranking.kinds[number] == "flat":
            solution.curves[number] = _flat(problem, solution, rows, segment)
        else:
            solution.curves[number] = _round_the_side(problem, solution, rows, segment, used)


def level_rows(problem: Problem, solution: Solution) -> list[Extent]:
    """Return ``(top, bottom, left, right)`` of every level, from the top."""
    rows: dict[int, list[float]] = {}
    for item, (x, y) in zip(problem.items, solution.corners, strict=True):
        row = rows.setdefault(round((y + item.height / 2) / 3), [y, y + item.height, x, x + item.width])
        row[0], row[1] = min(row[0], y), max(row[1], y + item.height)
        row[2], row[3] = min(row[2], x), max(row[3], x + item.width)
    merged: list[list[float]] = []
    for row in sorted(rows.values()):
        if merged and row[0] < merged[-1][1] - 0.5:
            last = merged[-1]
            merged[-1] = [last[0], max(last[1], row[1]), min(last[2], row[2]), max(last[3], row[3])]
        else:
            merged.append(row)
    return [(a, b, c, d) for a, b, c, d in merged]


def _row_of(rows: list[Extent], y: float) -> int:
    return min(bisect_left([row[1] for row in rows], y - 0.01), len(rows) - 1)


def _round_the_side(
    problem: Problem,
    solution: Solution,
    rows: list[Extent],
    segment: Segment,
    used: dict[bool, list[tuple[float, float, float]]],
) -> list[Point]:
    start = anchor_out(problem, solution, segment.tail)
    end = anchor_in(problem, solution, segment.head)
    low = start[1] if segment.tail[0] == BORDER else rows[_row_of(rows, start[1])][1]
    high = end[1] if segment.head[0] == BORDER else rows[_row_of(rows, end[1])][0]
    if segment.tail[0] == segment.head[0] != BORDER:
        x, y = solution.corners[segment.tail[0]]
        item = problem.items[segment.tail[0]]
        edge = x + item.width + FIRST_LANE
        return rounded(
            [
                start,
                (start[0], y + item.height + LEAVE),
                (edge, y + item.height + LEAVE),
                (edge, y - LEAVE),
                (end[0], y - LEAVE),
                end,
            ]
        )
    between = [row for row in rows if row[1] > min(low, high) - 1 and row[0] < max(low, high) + 1]
    left = min((row[2] for row in between), default=0.0) - FIRST_LANE
    right = max((row[3] for row in between), default=0.0) + FIRST_LANE
    middle = (start[0] + end[0]) / 2
    rightward = right - middle <= middle - left + 1
    lane = _free_lane(used[rightward], min(low, high), max(low, high), right if rightward else -left)
    step = LEAVE + 2.5 * (len(used[True]) + len(used[False]) - 1) % 10
    x = lane if rightward else -lane
    return rounded(
        [start, (start[0], low + step), (x, low + step), (x, high - step), (end[0], high - step), end]
    )


def _free_lane(used: list[tuple[float, float, float]], top: float, bottom: float, first: float) -> float:
    """Return the innermost place, ``first`` or further out, that no line uses between two heights."""
    place = first
    taken = [lane for lane, a, b in used if a < bottom + LEAVE and b > top - LEAVE]
    for _ in range(MOST_LANES):
        if all(abs(lane - place) >= LANE_GAP - 0.01 for lane in taken):
            break
        place += LANE_GAP
    used.append((place, top, bottom))
    return place


def _flat(problem: Problem, solution: Solution, rows: list[Extent], segment: Segment) -> list[Point]:
    """Join two items of one level: straight between neighbours, else in an arc above the others."""
    (ax, ay), (bx, by) = solution.corners[segment.tail[0]], solution.corners[segment.head[0]]
    first, second = problem.items[segment.tail[0]], problem.items[segment.head[0]]
    start, end = (ax + first.width, ay + first.height / 2), (bx, by + second.height / 2)
    between = any(
        start[0] - 1 < x < end[0] + 1
        and y < start[1] < y + item.height
        and k not in (segment.tail[0], segment.head[0])
        for k, (item, (x, y)) in enumerate(zip(problem.items, solution.corners, strict=True))
    )
    if start[0] < end[0] and not between:
        return [start, *straight(start, end)]
    top = rows[_row_of(rows, ay + 1)][0] - LEAVE
    up, down = (ax + first.width / 2 + 6, ay), (bx + second.width / 2 - 6, by)
    return rounded([up, (up[0], top), (down[0], top), down])


def rounded(corners: list[Point], radius: float = CORNER) -> list[Point]:
    """Return a line through ``corners`` with its bends rounded off, as Bezier pieces."""
    corners = [p for k, p in enumerate(corners) if k == 0 or _distance(p, corners[k - 1]) > 0.01]
    curve = [corners[0]]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        reach = min(radius, _distance(before, corner) / 2, _distance(corner, after) / 2)
        enter, leave = _toward(corner, before, reach), _toward(corner, after, reach)
        curve += straight(curve[-1], enter)
        curve += [_toward(enter, corner, reach * 0.56), _toward(leave, corner, reach * 0.56), leave]
    return [*curve, *straight(curve[-1], corners[-1])]


def _distance(a: Point, b: Point) -> float:
    return float(((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) ** 0.5)


def _toward(start: Point, end: Point, reach: float) -> Point:
    span = _distance(start, end) or 1.0
    return start[0] + (end[0] - start[0]) * reach / span, start[1] + (end[1] - start[1]) * reach / span
