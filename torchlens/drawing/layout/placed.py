"""The placed picture: a scene with positions, as plain data that every format can write.

Coordinates are points (1/72 inch) from the top left corner of the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from torchlens.drawing.scene import Motif, Scene, SceneBox, SceneEdge, SceneNode
from torchlens.drawing.text import ASCENT, text_width
from torchlens.drawing.themes import Theme

Point = tuple[float, float]
Curve = tuple[Point, ...]
"""Cubic Bezier pieces end to end: one start point, then three points a piece."""
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Rect:
    """An upright rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The x of the right side."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y of the lower side."""
        return self.y + self.height

    @property
    def center(self) -> Point:
        """The point in the middle."""
        return self.x + self.width / 2, self.y + self.height / 2


def around_points(points: Iterable[Point]) -> Rect:
    """Return the smallest rectangle around some points."""
    xs, ys = zip(*points, strict=True)
    return Rect(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))


@dataclass(frozen=True, slots=True)
class PlacedText:
    """One line of text; ``y`` is its base line, ``anchor`` says which part of it stands at ``x``.

    ``plate`` is the colour of a plate behind it, where lines would run through the text.
    """

    text: str
    x: float
    y: float
    size: float
    ink: str
    bold: bool = False
    anchor: Anchor = "start"
    plate: str | None = None


def rect_of(text: PlacedText) -> Rect:
    """Return the rectangle around the capitals of a text."""
    wide = text_width(text.text, text.size, bold=text.bold)
    left = text.x - {"start": 0.0, "middle": wide / 2, "end": wide}[text.anchor]
    return Rect(left, text.y - ASCENT * text.size, wide, ASCENT * text.size)


def plate_of(text: PlacedText) -> Rect:
    """Return the plate behind a text that stands on a line."""
    rect = rect_of(text)
    return Rect(
        round(rect.x - 1.5, 2), round(rect.y - 1.5, 2), round(rect.width + 3, 2), round(rect.height + 4, 2)
    )


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node with its rectangle; its text stands inside, or beside it if ``size`` was too small."""

    node: SceneNode
    rect: Rect
    texts: tuple[PlacedText, ...]
    text_inside: bool = True


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A box with its rectangle, nesting depth (0 stands in no other) and title area."""

    box: SceneBox
    rect: Rect
    depth: int
    texts: tuple[PlacedText, ...]
    title: Rect


@dataclass(frozen=True, slots=True)
class PlacedEdge:
    """One continuous line from producer to consumer.

    ``curve`` ends at the border of the consumer; the visible line ends at the base of ``arrow``, whose
    first point is the tip.
    """

    edge: SceneEdge
    curve: Curve
    arrow: tuple[Point, Point, Point]
    stroke: str
    width: float
    texts: tuple[PlacedText, ...] = ()


def line_part(curve: Curve, arrow: tuple[Point, Point, Point]) -> Curve:
    """Return the visible line of an edge: its curve, ending inside the arrow head."""
    tip, left, right = arrow
    base = (left[0] + right[0]) / 2, (left[1] + right[1]) / 2
    end = tip[0] + (base[0] - tip[0]) * 0.8, tip[1] + (base[1] - tip[1]) * 0.8
    before = curve[-2]
    moved = before[0] + end[0] - tip[0], before[1] + end[1] - tip[1]
    return (*curve[:-2], moved, end)


@dataclass(frozen=True, slots=True)
class PlacedStub:
    """A tag in place of a long line: beside the consumer, or (``outgoing``) beside the producer."""

    node: str
    outgoing: bool
    text: PlacedText
    line: tuple[Point, Point]
    arrow: tuple[Point, Point, Point]
    stroke: str
    tooltip: str


@dataclass(frozen=True, slots=True)
class PlacedSwatch:
    """A small sample of fill, outline or motif in the legend."""

    rect: Rect
    fill: str | None
    stroke: str | None
    dashed: bool = False
    motif: Motif | None = None


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A block of text (header, caption or legend) with its samples."""

    rect: Rect
    texts: tuple[PlacedText, ...] = ()
    swatches: tuple[PlacedSwatch, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """A whole picture with positions.

    ``stub_edges`` counts the edges of the scene that are drawn as tags instead of lines.
    """

    scene: Scene
    theme: Theme
    width: float
    height: float
    nodes: tuple[PlacedNode, ...]
    boxes: tuple[PlacedBox, ...]
    edges: tuple[PlacedEdge, ...]
    stubs: tuple[PlacedStub, ...]
    header: PlacedBlock
    caption: PlacedBlock
    legend: PlacedBlock | None
    stub_edges: int
