"""The scene: what a picture contains, before anything has a position.

Everything that decides *what* is drawn (views, channels, folding, marks, captions) ends in a
:class:`Scene`; everything that decides *where* and *in which format* starts from one.  A scene is
plain data without torch, so that both sides are tested apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["topdown", "bottomup", "leftright"]
RowKind = Literal["title", "shape", "detail", "note"]
Shape = Literal["box", "rounded", "ellipse", "octagon"]
Motif = Literal["diagonal", "cross", "dots", "horizontal"]

ROOT = ""
"""Scope of what stands in no box."""


class SceneError(ValueError):
    """A scene contradicts itself: an id twice, or an edge or scope that leads nowhere."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of text inside a node or a box title; ``kind`` chooses size, weight and ink."""

    text: str
    kind: RowKind = "detail"


@dataclass(slots=True)
class SceneNode:
    """A node: one op, one layer, or one collapsed module call.

    ``scope`` is the id of the box around it (``ROOT`` for none).  ``size`` fixes width and height in
    points, in which case the text stands beside the node when it does not fit.  Nodes with equal
    ``column`` (a pass number) stand side by side across the flow.
    """

    id: str
    rows: tuple[Row, ...]
    scope: str = ROOT
    fill: str = "#FFFFFF"
    ink: str = "#1A1A1A"
    stroke: str = "#4D4D4D"
    stroke_width: float = 1.0
    dashed: bool = False
    shape: Shape = "rounded"
    motif: Motif | None = None
    tooltip: str = ""
    size: tuple[float, float] | None = None
    column: int | None = None


@dataclass(slots=True)
class SceneBox:
    """An open module call (or another group): a frame with a title around its content.

    Boxes with equal ``column`` stand side by side across the flow, as nodes do.
    """

    id: str
    title: tuple[Row, ...]
    scope: str = ROOT
    fill: str = "#FFFFFF"
    ink: str = "#4D4D4D"
    stroke: str = "#B3B3B3"
    stroke_width: float = 1.0
    dashed: bool = False
    tooltip: str = ""
    column: int | None = None


@dataclass(slots=True)
class SceneEdge:
    """A tensor on its way from ``source`` to ``target`` (ids of nodes).

    ``back`` marks recurrence, the only edges that run against the flow.  ``count`` is the number of
    tensors that the line stands for; ``head`` and ``tail`` are short texts at the ends.
    """

    source: str
    target: str
    label: str = ""
    head: str = ""
    tail: str = ""
    back: bool = False
    dashed: bool = False
    count: int = 1
    stroke: str | None = None
    stroke_width: float = 1.0
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One line of the legend: a swatch and what it means."""

    text: str
    fill: str | None = None
    stroke: str | None = None
    dashed: bool = False
    motif: Motif | None = None


@dataclass(frozen=True, slots=True)
class LegendRamp:
    """The scale of a colour channel: its name with unit, its steps, and true values along it."""

    title: str
    colors: tuple[str, ...]
    minimum: str
    median: str
    maximum: str


@dataclass(frozen=True, slots=True)
class Legend:
    """What colours, outlines and motifs mean."""

    entries: tuple[LegendEntry, ...] = ()
    ramps: tuple[LegendRamp, ...] = ()


@dataclass(slots=True)
class Scene:
    """A whole picture without positions."""

    title: str
    header: tuple[str, ...] = ()
    caption: tuple[str, ...] = ()
    nodes: list[SceneNode] = field(default_factory=list)
    boxes: list[SceneBox] = field(default_factory=list)
    edges: list[SceneEdge] = field(default_factory=list)
    legend: Legend | None = None
    direction: Direction = "topdown"
    theme: str = "torchlens"
    long_edges: Literal["auto", "line", "stub"] = "auto"
    wrap: bool = False
    font_size: float | None = None
