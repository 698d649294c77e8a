"""Tall pictures in columns: the flow goes down one column and on at the top of the next."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from torchlens.drawing.layout.lanes import LANE_GAP, level_rows, rounded
from torchlens.drawing.layout.placed import Point
from torchlens.drawing.layout.problem import Problem, Solution, straight

TALL = 3.0
"""Wrapping starts when the drawing is more than this many times as tall as wide."""
ASPECT = 1.3
GUTTER = 34.0
TURN = 14.0
LINE_COST = 60.0


@dataclass(frozen=True, slots=True)
class Column:
    """A stretch of the flow and how far it moves."""

    top: float
    bottom: float
    dx: float
    dy: float

    def move(self, point: Point) -> Point:
        """Move a point with its column."""
        return point[0] + self.dx, point[1] + self.dy


def wrapped(problem: Problem, solution: Solution) -> Solution:
    """Return the solution in columns if it is more than three times as tall as wide."""
    if solution.width <= 0 or solution.height <= TALL * solution.width:
        return solution
    cuts = _cuts(problem, solution)
    if not cuts:
        return solution
    lines = {cut: sum(1 for curve in solution.curves if _crosses(curve, cut)) for cut in cuts}
    columns = _columns(solution, cuts, max(lines.values()))
    lanes: dict[int, int] = {}
    curves = [_wrap_curve(curve, columns, solution.width, lanes) for curve in solution.curves]
    bottom = max(column.bottom + column.dy for column in columns) + TURN + 6 * max(lines.values())
    for number, segment in enumerate(problem.segments):
        if segment.head[0] == -1 and curves[number]:
            x, y = curves[number][-1]
            curves[number] = [*curves[number], *straight((x, y), (x, bottom))]
    last = columns[-1]
    corners = []
    for item, (x, y) in zip(problem.items, solution.corners, strict=True):
        corners.append(_column_at(columns, y + item.height / 2).move((x, y)))
    return Solution(
        last.dx + solution.width,
        bottom,
        corners,
        list(solution.entry_x),
        [x + last.dx for x in solution.exit_x],
        curves,
    )


def _cuts(problem: Problem, solution: Solution) -> list[float]:
    """Choose the heights to cut at: evenly spread, where few lines cross."""
    rows = level_rows(problem, solution)
    gaps = [(a[1] + b[0]) / 2 for a, b in itertools.pairwise(rows)]
    crossing = _lines_at(solution, gaps)
    least = math.ceil(math.sqrt(solution.height / (ASPECT * (solution.width + GUTTER))))
    choices = [_cuts_for(count, solution, gaps, crossing) for count in range(max(least, 2), least + 3)]
    return min(choices, key=lambda cuts: _unevenness(cuts, solution))


def _unevenness(cuts: list[float], solution: Solution) -> float:
    """Tell how far the wrapped drawing would be from the wanted proportions."""
    stops = [0.0, *cuts, solution.height]
    tallest = max(b - a for a, b in itertools.pairwise(stops))
    return abs(math.log(tallest / (len(stops) - 1) / (solution.width + GUTTER)))


def _cuts_for(count: int, solution: Solution, gaps: list[float], crossing: list[int]) -> list[float]:
    """Cut into at most ``count`` columns of about equal height."""
    cuts: list[float] = []
    for number in range(1, count):
        last = cuts[-1] if cuts else 0.0
        goal = last + (solution.height - last) / (count - number + 1)
        costs = [
            (crossing[g] * LINE_COST + abs(gap - goal), gap) for g, gap in enumerate(gaps) if gap > last + 1
        ]
        if costs:
            cuts.append(min(costs)[1])
    return cuts


def _lines_at(solution: Solution, gaps: list[float]) -> list[int]:
    """Count the lines through every gap; gaps are sorted."""
    change = [0] * (len(gaps) + 1)
    for curve in solution.curves:
        if curve:
            low, high = sorted((curve[0][1], curve[-1][1]))
            change[bisect_right(gaps, low)] += 1
            change[bisect_left(gaps, high)] -= 1
    counts, now = [], 0
    for step in change[:-1]:
        now += step
        counts.append(now)
    return counts


def _columns(solution: Solution, cuts: list[float], most: int) -> list[Column]:
    stops = [0.0, *cuts, solution.height]
    step = math.ceil(solution.width + GUTTER + LANE_GAP * most)
    head = TURN + 6 * most
    return [
        Column(top, bottom, k * step, (head if k else 0.0) - top)
        for k, (top, bottom) in enumerate(itertools.pairwise(stops))
    ]


def _column_at(columns: list[Column], y: float) -> Column:
    return next((column for column in columns if y < column.bottom), columns[-1])


def _crosses(curve: list[Point], cut: float) -> bool:
    return bool(curve) and min(curve[0][1], curve[-1][1]) < cut < max(curve[0][1], curve[-1][1])


def _wrap_curve(
    curve: list[Point], columns: list[Column], width: float, lanes: dict[int, int]
) -> list[Point]:
    """Cut a line where its column ends, and lead it round through the gutter."""
    if not curve:
        return []
    pieces = _pieces(curve, [column.bottom for column in columns[:-1]])
    result: list[Point] = []
    before: Column | None = None
    for piece in pieces:
        k = len(piece) // 2
        middle = (piece[0][1] + piece[-1][1]) / 2 if len(piece) == 4 else piece[k][1]
        column = _column_at(columns, middle)
        moved = [column.move(point) for point in piece]
        if before is None or before is column:
            result = result + moved[1:] if result else moved
        else:
            gutter = min(columns.index(before), columns.index(column))
            lane = lanes[gutter] = lanes.get(gutter, -1) + 1
            x = columns[gutter].dx + width + GUTTER / 2 + LANE_GAP * lane
            turn = TURN - 3 + 6 * lane
            way = turn if column.dx > before.dx else -turn
            start, end = result[-1], moved[0]
            corners = [
                start,
                (start[0], start[1] + way),
                (x, start[1] + way),
                (x, end[1] - way),
                (end[0], end[1] - way),
                end,
            ]
            result += rounded(corners)[1:] + moved[1:]
        before = column
    return result


def _pieces(curve: list[Point], cuts: list[float]) -> list[list[Point]]:
    """Split a curve at every crossing with one of the heights."""
    pieces, current = [], [curve[0]]
    for k in range(1, len(curve), 3):
        rest = [curve[k - 1], *curve[k : k + 3]]
        while True:
            low, high = sorted((rest[0][1], rest[3][1]))
            inside = [cut for cut in cuts if low + 0.01 < cut < high - 0.01]
            if not inside:
                break
            first, rest = _split(rest, inside[0] if rest[0][1] < rest[3][1] else inside[-1])
            pieces.append([*current, *first[1:]])
            current = [first[3]]
        current += rest[1:]
    return [*pieces, current]


def _split(piece: list[Point], height: float) -> tuple[list[Point], list[Point]]:
    """Split a Bezier piece where it passes a height (de Casteljau, found by bisection)."""
    low, high = 0.0, 1.0
    rising = piece[0][1] < piece[3][1]
    for _ in range(40):
        t = (low + high) / 2
        first, second = _divide(piece, t)
        if (first[3][1] < height) == rising:
            low = t
        else:
            high = t
    return first, second


def _divide(piece: list[Point], t: float) -> tuple[list[Point], list[Point]]:
    a, b, c, d = piece
    ab, bc, cd = _between(a, b, t), _between(b, c, t), _between(c, d, t)
    abc, bcd = _between(ab, bc, t), _between(bc, cd, t)
    middle = _between(abc, bcd, t)
    return [a, ab, abc, middle], [middle, bcd, cd, d]


def _between(a: Point, b: Point, t: float) -> Point:
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t
