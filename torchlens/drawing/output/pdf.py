"""PDF: vectors and selectable text in the shipped fonts, drawn with fpdf2."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

from torchlens.drawing.layout.placed import (
    Curve,
    Placed,
    PlacedBlock,
    PlacedBox,
    PlacedEdge,
    PlacedNode,
    PlacedStub,
    PlacedText,
    Point,
    Rect,
    line_part,
    plate_of,
)
from torchlens.drawing.output.registry import writes
from torchlens.drawing.output.shapes import (
    BOX_RADIUS,
    DASHES,
    RADIUS,
    motif_ink,
    motif_lines,
    octagon,
)
from torchlens.drawing.scene import Motif
from torchlens.drawing.text import BOLD, FALLBACK, FONTS, REGULAR, clean, runs, text_width

LARGEST = 14400.0
"""Longest side of a PDF page in points; larger pictures are scaled down to it."""
_EPOCH = datetime(2000, 1, 1, tzinfo=timezone.utc)


@writes("pdf")
def pdf(placed: Placed, *, dpi: int) -> bytes:
    """Write the picture as PDF; a page longer than 14,400 points is scaled down to that."""
    del dpi
    return write_pdf(placed)[0]


def write_pdf(placed: Placed) -> tuple[bytes, float]:
    """Return the PDF and the scale that it was drawn at."""
    scale = min(1.0, LARGEST / max(placed.width, placed.height))
    page = _Page(placed, scale)
    page.draw()
    return page.close(), scale


class _Page:
    """One page under way; every coordinate of the picture passes through ``scale``."""

    def __init__(self, placed: Placed, scale: float) -> None:
        from fpdf import FPDF

        self.placed, self.scale = placed, scale
        size = (max(placed.width * scale, 3), max(placed.height * scale, 3))
        self.file: Any = FPDF(unit="pt", format=size)
        self.file.set_creation_date(_EPOCH)
        self.file.set_title(clean(placed.scene.title))
        self.file.set_auto_page_break(False)
        self.file.set_margin(0)
        for name in (REGULAR, BOLD, FALLBACK):
            self.file.add_font(name, "", FONTS / f"{name}.ttf")
        self.file.add_page()

    def close(self) -> bytes:
        """Return the finished file."""
        return bytes(self.file.output())

    def draw(self) -> None:
        """Draw everything, from the back to the front."""
        placed = self.placed
        self.shape(Rect(0, 0, placed.width, placed.height), placed.theme.background, None)
        for block in (placed.header, placed.caption, placed.legend):
            if block:
                self.block(block)
        for box in placed.boxes:
            self.box(box)
        for edge in placed.edges:
            self.edge(edge)
        for stub in placed.stubs:
            self.stub(stub)
        for node in placed.nodes:
            self.node(node)
        for text in (text for edge in placed.edges for text in edge.texts):
            self.text(text)

    def at(self, point: Point) -> Point:
        """Scale a point."""
        return point[0] * self.scale, point[1] * self.scale

    def pen(self, stroke: str, width: float, dashed: bool = False) -> None:
        """Set colour, width and dashes of lines."""
        self.file.set_draw_color(*_rgb(stroke))
        self.file.set_line_width(width * self.scale)
        if dashed:
            self.file.set_dash_pattern(DASHES[0] * self.scale, DASHES[1] * self.scale)
        else:
            self.file.set_dash_pattern()

    def shape(self, rect: Rect, fill: str | None, stroke: str | None, radius: float = 0.0) -> None:
        """Draw a rectangle with the current pen."""
        style = ("F" if fill else "") + ("D" if stroke else "")
        if not style:
            return
        if fill:
            self.file.set_fill_color(*_rgb(fill))
        (x, y), (w, h) = self.at((rect.x, rect.y)), self.at((rect.width, rect.height))
        radius = min(radius, rect.width / 2, rect.height / 2) * self.scale
        self.file.rect(x, y, w, h, style=style, round_corners=radius > 0, corner_radius=radius)

    def text(self, text: PlacedText) -> None:
        """Write one line of text; letters without a glyph come as the replacement sign."""
        wide = text_width(text.text, text.size, bold=text.bold)
        x = text.x - {"start": 0.0, "middle": wide / 2, "end": wide}[text.anchor]
        if text.plate:
            self.shape(plate_of(text), text.plate, None, 2)
        self.file.set_text_color(*_rgb(text.ink))
        for font, part in runs(text.text, bold=text.bold):
            self.file.set_font(font, size=text.size * self.scale)
            self.file.text(*self.at((x, text.y)), part)
            x += text_width(part, text.size, bold=text.bold)

    def block(self, block: PlacedBlock) -> None:
        """Draw header, caption or legend."""
        for swatch in block.swatches:
            if swatch.stroke:
                self.pen(swatch.stroke, 1, swatch.dashed)
            self.shape(swatch.rect, swatch.fill, swatch.stroke, 3 if swatch.stroke else 0)
            if swatch.motif:
                theme = self.placed.theme
                self.motif(swatch.rect, swatch.motif, swatch.fill or theme.background, theme.ink)
        for text in block.texts:
            self.text(text)

    def motif(self, rect: Rect, motif: Motif, fill: str, ink: str) -> None:
        """Hatch a rectangle."""
        self.pen(motif_ink(fill, ink), 1.1 if motif == "dots" else 0.7)
        (x, y), (w, h) = self.at((rect.x, rect.y)), self.at((rect.width, rect.height))
        with self.file.rect_clip(x, y, w, h):
            for start, end in motif_lines(rect, motif):
                self.file.line(*self.at(start), *self.at(end))

    def box(self, box: PlacedBox) -> None:
        """Draw the frame and title of a box."""
        self.pen(box.box.stroke, box.box.stroke_width, box.box.dashed)
        self.shape(box.rect, box.box.fill, box.box.stroke, BOX_RADIUS)
        for text in box.texts:
            self.text(text)

    def node(self, node: PlacedNode) -> None:
        """Draw a node with its motif and text."""
        look, rect = node.node, node.rect
        self.pen(look.stroke, look.stroke_width, look.dashed)
        self.outline(node, fill=True, line=not look.motif)
        if look.motif:
            inner = Rect(rect.x + 1, rect.y + 1, rect.width - 2, rect.height - 2)
            self.motif(inner, look.motif, look.fill, look.ink)
            self.pen(look.stroke, look.stroke_width, look.dashed)
            self.outline(node, fill=False, line=True)
        for text in node.texts:
            self.text(text)

    def outline(self, node: PlacedNode, *, fill: bool, line: bool) -> None:
        """Draw the shape of a node."""
        look, rect = node.node, node.rect
        style = ("F" if fill else "") + ("D" if line else "")
        self.file.set_fill_color(*_rgb(look.fill))
        if look.shape == "ellipse":
            self.file.ellipse(*self.at((rect.x, rect.y)), *self.at((rect.width, rect.height)), style=style)
        elif look.shape == "octagon":
            self.file.polygon([self.at(p) for p in octagon(rect)], style=style)
        else:
            radius = RADIUS if look.shape == "rounded" else 0.0
            self.shape(rect, look.fill if fill else None, look.stroke if line else None, radius)

    def edge(self, edge: PlacedEdge) -> None:
        """Draw a line with its arrow head."""
        self.pen(edge.stroke, edge.width, edge.edge.dashed)
        self.curve(line_part(edge.curve, edge.arrow))
        self.head(edge.arrow, edge.stroke)

    def curve(self, curve: Curve) -> None:
        """Draw a Bezier curve with the current pen."""
        from fpdf.drawing import PaintedPath

        path = PaintedPath(*self.at(curve[0]))
        path.style.auto_close = False
        path.style.fill_color = None
        for k in range(1, len(curve), 3):
            path.curve_to(*(value for point in curve[k : k + 3] for value in self.at(point)))
        self.file.draw_path(path)

    def head(self, arrow: tuple[Point, Point, Point], color: str) -> None:
        """Fill an arrow head."""
        self.file.set_fill_color(*_rgb(color))
        self.file.polygon([self.at(p) for p in arrow], style="F")

    def stub(self, stub: PlacedStub) -> None:
        """Draw a tag."""
        self.pen(stub.stroke, 1)
        self.file.line(*self.at(stub.line[0]), *self.at(stub.line[1]))
        self.head(stub.arrow, stub.stroke)
        self.text(stub.text)


@lru_cache(maxsize=256)
def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
