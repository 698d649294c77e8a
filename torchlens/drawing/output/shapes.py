"""Small geometry that several formats share, so that they draw the same picture."""

from __future__ import annotations

from torchlens.drawing.layout.placed import Point, Rect
from torchlens.drawing.scene import Motif
from torchlens.drawing.themes import contrast, mix

RADIUS = 5.0
BOX_RADIUS = 8.0
DASH = "4 3"
DASHES = (4.0, 3.0)


def octagon(rect: Rect) -> list[Point]:
    """Return the corners of a rectangle with its corners cut off."""
    cut = min(rect.height * 0.28, rect.width * 0.2)
    x0, y0, x1, y1 = rect.x, rect.y, rect.right, rect.bottom
    return [
        (x0 + cut, y0),
        (x1 - cut, y0),
        (x1, y0 + cut),
        (x1, y1 - cut),
        (x1 - cut, y1),
        (x0 + cut, y1),
        (x0, y1 - cut),
        (x0, y0 + cut),
    ]


def motif_ink(fill: str, ink: str) -> str:
    """Return the colour of a motif's lines: seen against the fill, quiet against the text."""
    for share in (0.8, 0.72, 0.64, 0.56):
        color = mix(ink, fill, share)
        if contrast(color, fill) >= 1.25:
            return color
    return mix(ink, fill, 0.5)


def motif_lines(rect: Rect, motif: Motif, step: float = 6.0) -> list[tuple[Point, Point]]:
    """Return the strokes of a motif over a rectangle; they may reach out of it and want clipping."""
    lines: list[tuple[Point, Point]] = []
    if motif == "horizontal":
        count = int(rect.height / step) + 1
        return [((rect.x, rect.y + k * step + 3), (rect.right, rect.y + k * step + 3)) for k in range(count)]
    if motif == "dots":
        for row in range(int(rect.height / 3) + 1):
            y = rect.y + row * 3 + 1.5
            for column in range(int(rect.width / step) + 1):
                x = rect.x + column * step + 1.5 + (3 if row % 2 else 0)
                lines.append(((x - 0.6, y), (x + 0.6, y)))
        return lines
    for k in range(int((rect.width + rect.height) / step) + 2):
        x = rect.x + k * step
        lines.append(((x, rect.y), (x - rect.height, rect.bottom)))
        if motif == "cross":
            x = rect.x - rect.height + k * step
            lines.append(((x, rect.y), (x + rect.height, rect.bottom)))
    return lines
