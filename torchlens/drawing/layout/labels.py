"""Where the texts of edges stand: beside their line, clear of nodes and of each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from torchlens.drawing.layout.passing import Passing, point_at
from torchlens.drawing.layout.placed import Curve, PlacedText, Rect
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


def edge_texts(
    edge: SceneEdge, curve: Curve, theme: Theme, taken: tuple[Taken, Passing], scale: float
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
    text: str,
    curve: Curve,
    places: list[float],
    size: float,
    theme: Theme,
    around: tuple[Taken, Passing],
) -> PlacedText:
    """Place a text at the first of ``places`` where it covers neither a line nor anything taken."""
    taken, lines = around
    wide, high = text_width(text, size), size + 2
    best, fewest = None, 100
    for place in places:
        x, y = point_at(curve, place)
        for left in (x + OFF, x - OFF - wide, x + 3 * OFF, x - 3 * OFF - wide):
            rect = Rect(left, y - high / 2, wide, high)
            crossed = len(lines.near((rect.x, rect.y), (wide, high), 1.0))
            faults = 10 * taken.overlaps(rect) + min(crossed, 9)
            if faults < fewest:
                best, fewest = rect, faults
        if not fewest:
            break
    assert best is not None
    taken.add(best)
    return _text(text, best, size, theme)


def _text(text: str, rect: Rect, size: float, theme: Theme) -> PlacedText:
    return PlacedText(text, round(rect.x, 2), round(rect.y + 1 + size * 0.86, 2), size, theme.muted)
