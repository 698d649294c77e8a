"""Where the texts of edges stand: beside their line, clear of nodes and of each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from torchlens.drawing.layout.placed import Curve, PlacedText, Point, Rect
from torchlens.drawing.scene import SceneEdge
from torchlens.drawing.text import clean, text_width
from torchlens.drawing.themes import Theme

CELL = 120.0
OFF = 4.0


class Taken:
    """Rectangles in a coarse grid, for quick overlap checks."""

    def __init__(self, rects: Iterable[Rect] = ()) -> None:
        self._cells: dict[tuple[int, int], list[Rect]] = defaultdict(list)
        for rect in rects:
            self.add(rect)

    def add(self, rect: Rect) -> None:
        """Remember a rectangle."""
        for cell in self._around(rect):
            self._cells[cell].append(rect)

    def overlaps(self, rect: Rect) -> bool:
        """Tell whether a rectangle overlaps one that is remembered."""
        return any(
            rect.x < other.right and other.x < rect.right and rect.y < other.bottom and other.y < rect.bottom
            for cell in self._around(rect)
            for other in self._cells.get(cell, ())
        )

    @staticmethod
    def _around(rect: Rect) -> Iterator[tuple[int, int]]:
        for column in range(int(rect.x // CELL), int(rect.right // CELL) + 1):
            for row in range(int(rect.y // CELL), int(rect.bottom // CELL) + 1):
                yield column, row


def point_at(curve: Curve, place: float) -> Point:
    """Return the point at ``place`` (0 to the number of pieces) of a Bezier curve."""
    piece = min(int(place), (len(curve) - 1) // 3 - 1)
    t = place - piece
    a, b, c, d = curve[3 * piece : 3 * piece + 4]
    s = 1 - t
    weights = s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t
    x, y = (sum(w * p[k] for w, p in zip(weights, (a, b, c, d), strict=True)) for k in (0, 1))
    return x, y


def edge_texts(
    edge: SceneEdge, curve: Curve, theme: Theme, taken: Taken, scale: float
) -> tuple[PlacedText, ...]:
    """Place the texts of one edge and remember where they stand."""
    label = edge.label or (f"×{edge.count}" if edge.count > 1 else "")
    pieces = (len(curve) - 1) // 3
    middle = [pieces * share for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)]
    wanted = (
        (edge.tail, [0.3, 0.45, 0.15]),
        (edge.head, [pieces - 0.35, pieces - 0.5, pieces - 0.25]),
        (label, middle),
    )
    size = theme.label_size * scale
    return tuple(_beside(clean(text), curve, places, size, theme, taken) for text, places in wanted if text)


def _beside(
    text: str, curve: Curve, places: list[float], size: float, theme: Theme, taken: Taken
) -> PlacedText:
    """Place a text at the first of ``places`` where it covers neither its line nor anything taken."""
    wide = text_width(text, size)
    line = [point_at(curve, k / 12) for k in range(4 * (len(curve) - 1) + 1)] if len(curve) < 60 else []
    best, fewest = None, 4
    for place in places:
        x, y = point_at(curve, place)
        for left in (x + OFF, x - OFF - wide, x + 3 * OFF, x - 3 * OFF - wide):
            rect = Rect(left, y - size / 2 - 1, wide, size + 2)
            faults = 2 * taken.overlaps(rect) + any(_inside(p, rect) for p in line)
            if faults < fewest:
                best, fewest = rect, faults
        if not fewest:
            break
    assert best is not None
    taken.add(best)
    return _text(text, best, size, theme)


def _inside(point: Point, rect: Rect) -> bool:
    return rect.x - 1 < point[0] < rect.right + 1 and rect.y < point[1] < rect.bottom


def _text(text: str, rect: Rect, size: float, theme: Theme) -> PlacedText:
    return PlacedText(text, round(rect.x, 2), round(rect.y + 1 + size * 0.86, 2), size, theme.muted)
