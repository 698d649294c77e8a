"""Where lines and frames pass, for keeping texts clear of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

from torchlens.drawing.layout.placed import Curve, Point, Rect

CELL = 96.0
_BENT = 8
"""Straight pieces that stand for one bent Bezier piece."""

_Stroke = tuple[float, float, float, float, int]


def flat(curve: Curve) -> list[Point]:
    """Return the corners of a chain of straight strokes that follows a curve."""
    points = [curve[0]]
    for k in range(1, len(curve), 3):
        a, (b, c, d) = points[-1], curve[k : k + 3]
        if a[0] == b[0] == c[0] == d[0] or a[1] == b[1] == c[1] == d[1]:
            points.append(d)
            continue
        for step in range(1, _BENT + 1):
            t = step / _BENT
            s = 1 - t
            p, q, r, u = s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t
            points.append(
                (p * a[0] + q * b[0] + r * c[0] + u * d[0], p * a[1] + q * b[1] + r * c[1] + u * d[1])
            )
    return points


class Passing:
    """Strokes in a coarse grid; every stroke carries the number of its line."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[_Stroke]] = defaultdict(list)

    def add(self, points: list[Point], number: int) -> None:
        """Remember a line."""
        (x0, y0), rest = points[0], points[1:]
        for x1, y1 in rest:
            stroke = x0, y0, x1, y1, number
            for cell in cells(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)):
                self._cells[cell].append(stroke)
            x0, y0 = x1, y1

    def add_frame(self, rect: Rect) -> None:
        """Remember the outline of a box; all outlines count as one line."""
        x0, y0, x1, y1 = rect.x, rect.y, rect.right, rect.bottom
        self.add([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], -1)

    def through(self, rect: Rect) -> set[int]:
        """Return the numbers of the lines that run through a rectangle."""
        found: set[int] = set()
        left, top, right, bottom = rect.x, rect.y, rect.right, rect.bottom
        for cell in cells(left, top, right, bottom):
            for x0, y0, x1, y1, number in self._cells.get(cell, ()):
                beside = (x0 < left and x1 < left) or (x0 > right and x1 > right)
                if beside or (y0 < top and y1 < top) or (y0 > bottom and y1 > bottom) or number in found:
                    continue
                if x0 == x1 or y0 == y1 or _meets((x0, y0, x1, y1), rect):
                    found.add(number)
        return found


def cells(left: float, top: float, right: float, bottom: float) -> Iterator[tuple[int, int]]:
    """Return the cells of the grid that an upright rectangle touches."""
    columns = range(math.floor(left / CELL), math.floor(right / CELL) + 1)
    for row in range(math.floor(top / CELL), math.floor(bottom / CELL) + 1):
        for column in columns:
            yield column, row


def _meets(stroke: tuple[float, float, float, float], rect: Rect) -> bool:
    """Tell whether a slanting stroke meets a rectangle (clipped side by side, after Liang and Barsky)."""
    x0, y0, x1, y1 = stroke
    start, end = 0.0, 1.0
    for step, low, high in (
        (x1 - x0, rect.x - x0, rect.right - x0),
        (y1 - y0, rect.y - y0, rect.bottom - y0),
    ):
        near, far = sorted((low / step, high / step))
        start, end = max(start, near), min(end, far)
    return start <= end


class Taken:
    """Rectangles in a coarse grid, for quick overlap checks."""

    def __init__(self, rects: Iterable[Rect] = ()) -> None:
        self._cells: dict[tuple[int, int], list[Rect]] = defaultdict(list)
        for rect in rects:
            self.add(rect)

    def add(self, rect: Rect) -> None:
        """Remember a rectangle."""
        for cell in cells(rect.x, rect.y, rect.right, rect.bottom):
            self._cells[cell].append(rect)

    def overlaps(self, rect: Rect) -> bool:
        """Tell whether a rectangle overlaps one that is remembered."""
        x0, y0, x1, y1 = rect.x, rect.y, rect.right, rect.bottom
        return any(
            x0 < other.x + other.width and other.x < x1 and y0 < other.y + other.height and other.y < y1
            for cell in cells(x0, y0, x1, y1)
            for other in self._cells.get(cell, ())
        )
