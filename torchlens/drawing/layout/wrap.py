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
WINDOW = 0.15
"""Share of a column's height within which the place with the fewest lines is chosen for its end."""


@dataclass(frozen=True, slots=True)
class Column:
    """A stretch of the flow, how far it moves, and where it then ends on the right."""

    top: float
    bottom: float
    dx: float
    dy: float
    right: float

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
    lines = [sum(1 for curve in solution.curves if _crosses(curve, cut)) for cut in cuts]
    columns = _columns(problem, solution, cuts, lines)
    lanes: dict[int, int] = {}
    curves = [_wrap_curve(curve, columns, lanes) for curve in solution.curves]
    bottom = max(column.bottom + column.dy for column in columns) + TURN + 6 * max(lines)
    for number, segment in enumerate(problem.segments):
        if segment.head[0] == -1 and curves[number]:
            x, y = curves[number][-1]
            curves[number] = [*curves[number], *straight((x, y), (x, bottom))]
    first, last = columns[0], columns[-1]
    corners = []
    for item, (x, y) in zip(problem.items, solution.corners, strict=True):
        corners.append(_column_at(columns, y + item.height / 2).move((x, y)))
    return Solution(
        last.right,
        bottom,
        corners,
        [x + first.dx for x in solution.entry_x],
        [x + last.dx for x in solution.exit_x],
        curves,
    )


def _cuts(problem: Problem, solution: Solution) -> list[float]:
    """Choose the heights to cut at: columns of about equal height, ended where few lines cross."""
    rows = level_rows(problem, solution)
    gaps = [(a[1] + b[0]) / 2 for a, b in itertools.pairwise(rows)]
    crossing = _lines_at(solution, gaps)
    least = math.ceil(math.sqrt(solution.height / (ASPECT * (solution.width + GUTTER))))
    choices = [_cuts_for(count, solution.height, gaps, crossing) for count in range(max(least, 2), least + 3)]
    return min(choices, key=lambda cuts: _unevenness(cuts, solution))


def _unevenness(cuts: list[float], solution: Solution) -> float:
    """Tell how far the wrapped drawing would be from the wanted proportions, and how ragged."""
    stops = [0.0, *cuts, solution.height]
    heights = [b - a for a, b in itertools.pairwise(stops)]
    wide = len(heights) * (solution.width + GUTTER)
    empty = max(heights) * len(heights) / solution.height - 1
    return abs(math.log(max(heights) * ASPECT / wide)) + empty


def _cuts_for(count: int, height: float, gaps: list[float], crossing: list[int]) -> list[float]:
    """Cut into at most ``count`` columns whose tallest is as low as can be."""
    low, high = height / count, height
    best: list[float] = []
    for _ in range(16):
        middle = (low + high) / 2
        cuts = _filled(middle, height, gaps, crossing)
        tallest = max(b - a for a, b in itertools.pairwise([0.0, *cuts, height]))
        if len(cuts) < count and tallest <= middle:
            best, high = cuts, middle
        else:
            low = middle
    return best


def _filled(most: float, height: float, gaps: list[float], crossing: list[int]) -> list[float]:
    """Fill columns from the first to the last, each up to ``most`` high."""
    cuts: list[float] = []
    last = 0.0
    while height - last > most:
        end = bisect_right(gaps, last + most)
        start = max(bisect_left(gaps, last + (1 - WINDOW) * most), bisect_right(gaps, last + 1))
        if start >= end:
            start = bisect_right(gaps, last + 1)
            start, end = (end - 1, end) if start < end else (start, start + 1)
        if start >= len(gaps):
            break
        best = min(range(start, min(end, len(gaps))), key=lambda g: (crossing[g], -g))
        last = gaps[best]
        cuts.append(last)
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


def _columns(problem: Problem, solution: Solution, cuts: list[float], lines: list[int]) -> list[Column]:
    """Place the columns side by side, each as wide as what stands in it."""
    stops = [0.0, *cuts, solution.height]
    extents = _extents(problem, solution, cuts)
    head = TURN + 6 * max(lines)
    columns, x = [], 0.0
    for k, (top, bottom) in enumerate(itertools.pairwise(stops)):
        left, right = extents[k]
        columns.append(Column(top, bottom, x - left, (head if k else 0.0) - top, x + right - left))
        x = columns[-1].right + (GUTTER + LANE_GAP * lines[k] if k < len(lines) else 0)
    return columns


def _extents(problem: Problem, solution: Solution, cuts: list[float]) -> list[tuple[float, float]]:
    """Return the leftmost and rightmost whole point of every column."""
    found = [[math.inf, -math.inf] for _ in range(len(cuts) + 1)]

    def grow(x0: float, x1: float, y0: float, y1: float) -> None:
        for k in range(bisect_right(cuts, y0), bisect_left(cuts, y1) + 1):
            found[k][0], found[k][1] = min(found[k][0], x0), max(found[k][1], x1)

    for item, (x, y) in zip(problem.items, solution.corners, strict=True):
        grow(x, x + item.width, y, y + item.height)
    for curve in solution.curves:
        for k in range(0, len(curve) - 1, 3):
            xs, ys = zip(*curve[k : k + 4], strict=True)
            grow(min(xs), max(xs), min(ys), max(ys))
    return [(math.floor(left), math.ceil(right)) for left, right in found]


def _column_at(columns: list[Column], y: float) -> Column:
    return next((column for column in columns if y < column.bottom), columns[-1])


def _crosses(curve: list[Point], cut: float) -> bool:
    return bool(curve) and min(curve[0][1], curve[-1][1]) < cut < max(curve[0][1], curve[-1][1])


def _wrap_curve(curve: list[Point], columns: list[Column], lanes: dict[int, int]) -> list[Point]:
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
            x = columns[gutter].right + GUTTER / 2 + LANE_GAP * lane
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
