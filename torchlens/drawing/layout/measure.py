"""How much room text needs, before anything has a position."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchlens.drawing.layout.placed import PlacedText, Rect
from torchlens.drawing.scene import Row, Scene, SceneBox, SceneNode
from torchlens.drawing.text import ASCENT, LINE, clean, shorten, text_width
from torchlens.drawing.themes import RowStyle, Theme

PAD_X, PAD_Y = 10.0, 6.0
MIN_WIDTH = 56.0
MAX_TEXT = 420.0
TITLE_SHARE = 0.93
"""Size of box titles as a share of node titles."""
TITLE_GAP = 7.0


@dataclass(frozen=True, slots=True)
class Line:
    """One measured line of text."""

    text: str
    size: float
    bold: bool
    muted: bool
    width: float

    @property
    def height(self) -> float:
        """Height with the usual distance to the next line."""
        return self.size * LINE


@dataclass(frozen=True, slots=True)
class Measured:
    """A node with its size; text that does not fit a fixed size needs ``beside`` points more."""

    lines: tuple[Line, ...]
    width: float
    height: float
    fixed: bool
    beside: float = 0.0


@dataclass(frozen=True, slots=True)
class Sizer:
    """Turns rows of text into measured lines under one theme and scale."""

    theme: Theme
    scale: float = 1.0

    @classmethod
    def of(cls, scene: Scene, theme: Theme) -> Sizer:
        """Make the sizer of a scene, whose ``font_size`` is the size of node titles."""
        return cls(theme, scene.font_size / theme.rows["title"].size if scene.font_size else 1.0)

    def line(self, text: str, style: RowStyle, share: float = 1.0) -> Line:
        """Measure one line of text; overlong text loses its middle."""
        size = round(style.size * self.scale * share, 2)
        shown = shorten(clean(text), size, MAX_TEXT * self.scale, bold=style.bold)
        wide = text_width(shown, size, bold=style.bold)
        return Line(shown, size, style.bold, style.muted, wide)

    def rows(self, rows: tuple[Row, ...], share: float = 1.0) -> tuple[Line, ...]:
        """Measure the rows of a node or title."""
        return tuple(self.line(row.text, self.theme.rows[row.kind], share) for row in rows)

    def node(self, node: SceneNode) -> Measured:
        """Measure a node."""
        lines = self.rows(node.rows)
        wide = max((line.width for line in lines), default=0.0)
        high = sum(line.height for line in lines)
        if node.size is not None:
            width, height = node.size
            fits = wide + 6 <= width and high + 4 <= height
            return Measured(lines, width, height, True, 0.0 if fits else wide + 8)
        width, height = _around(wide + 2 * PAD_X, high + 2 * PAD_Y, node.shape)
        return Measured(lines, _even(max(width, MIN_WIDTH)), _even(height), False)

    def title(self, box: SceneBox) -> tuple[tuple[Line, ...], float, float]:
        """Measure the title of a box, whose rows stand in one line: lines, width, height."""
        lines = self.rows(box.title, TITLE_SHARE)
        wide = sum(line.width for line in lines) + TITLE_GAP * max(len(lines) - 1, 0)
        return lines, wide, max((line.height for line in lines), default=0.0)


def _around(width: float, height: float, shape: str) -> tuple[float, float]:
    if shape == "ellipse":
        return width * 1.25, height * 1.5
    if shape == "octagon":
        return width + height * 0.3, height
    return width, height


def _even(value: float) -> float:
    return 2.0 * math.ceil(value / 2.0)


def stacked(lines: tuple[Line, ...], rect: Rect, theme: Theme, node: SceneNode) -> tuple[PlacedText, ...]:
    """Centre lines in a node."""
    y = rect.y + (rect.height - sum(line.height for line in lines)) / 2
    x, texts = rect.center[0], []
    for line in lines:
        base = y + (line.height + ASCENT * line.size) / 2
        ink = theme.muted_on(node.fill, node.ink) if line.muted else node.ink
        texts.append(PlacedText(line.text, x, base, line.size, ink, line.bold, "middle"))
        y += line.height
    return tuple(texts)


def beside(
    lines: tuple[Line, ...], x: float, middle: float, *, ink: str, quiet: str
) -> tuple[PlacedText, ...]:
    """Place lines to the right of ``x``, around the height ``middle``."""
    y, texts = middle - sum(line.height for line in lines) / 2, []
    for line in lines:
        base = y + (line.height + ASCENT * line.size) / 2
        texts.append(PlacedText(line.text, x, base, line.size, quiet if line.muted else ink, line.bold))
        y += line.height
    return tuple(texts)


def in_one_line(
    lines: tuple[Line, ...], x: float, y: float, height: float, *, ink: str, quiet: str
) -> tuple[PlacedText, ...]:
    """Place lines one after the other from ``x`` on one base line."""
    base = y + height / 2 + ASCENT * max((line.size for line in lines), default=0.0) / 2
    texts = []
    for line in lines:
        texts.append(PlacedText(line.text, x, base, line.size, quiet if line.muted else ink, line.bold))
        x += line.width + TITLE_GAP
    return tuple(texts)
