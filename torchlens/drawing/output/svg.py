"""SVG: groups for boxes, ids from labels, titles as tooltips, real text, no script."""

from __future__ import annotations

import re
from collections import defaultdict
from html import escape

from torchlens.drawing.layout.placed import (
    Placed,
    PlacedBlock,
    PlacedBox,
    PlacedEdge,
    PlacedNode,
    PlacedStub,
    PlacedText,
    line_part,
    plate_of,
)
from torchlens.drawing.output.registry import writes
from torchlens.drawing.output.shapes import BOX_RADIUS, DASH, RADIUS, motif_ink, octagon
from torchlens.drawing.scene import ROOT, Motif
from torchlens.drawing.text import FAMILY, clean

_PATTERNS: dict[Motif, str] = {
    "diagonal": '<path d="M-1 1L1 -1M0 6L6 0M5 7L7 5"/>',
    "cross": '<path d="M0 6L6 0M0 0L6 6"/>',
    "dots": '<circle cx="1.5" cy="1.5" r=".8"/><circle cx="4.5" cy="4.5" r=".8"/>',
    "horizontal": '<path d="M0 3H6"/>',
}


@writes("svg")
def svg(placed: Placed, *, dpi: int) -> bytes:
    """Write the picture as SVG."""
    del dpi
    ids = _Ids()
    style = (
        f"text{{font-family:{FAMILY};white-space:pre}}.b{{font-weight:600}}"
        ".m{text-anchor:middle}.e{text-anchor:end}path,line{fill:none}"
    )
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{num(placed.width)}" height="{num(placed.height)}" '
        f'viewBox="0 0 {num(placed.width)} {num(placed.height)}">',
        f"<title>{xml(placed.scene.title)}</title>",
        f"<style>{style}</style>",
        _definitions(placed),
        f'<rect width="100%" height="100%" fill="{placed.theme.background}"/>',
        *_block(placed, "header", placed.header),
        *_block(placed, "caption", placed.caption),
        *(_block(placed, "legend", placed.legend) if placed.legend else ()),
        *_graph(placed, ids),
        "</svg>\n",
    ]
    return "\n".join(part for part in parts if part).encode("utf-8")


def num(value: float) -> str:
    """Write a coordinate with at most two decimals."""
    whole = int(value)
    if whole == value:
        return str(whole)
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def xml(text: str) -> str:
    """Escape text for XML, after removing what XML cannot hold."""
    return escape(clean(text))


def _lines(text: str) -> str:
    return "\n".join(xml(line) for line in text.split("\n"))


class _Ids:
    """Makes safe ids, each used once."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def new(self, label: str) -> str:
        """Return an id that resembles ``label``."""
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", label).strip("-") or "x"
        name = name if name[0].isalpha() or name[0] == "_" else f"_{name}"
        count = self._used[name] = self._used.get(name, 0) + 1
        return name if count == 1 else self.new(f"{name}_{count}")


def _definitions(placed: Placed) -> str:
    entries = placed.legend.swatches if placed.legend else ()
    motifs = {(n.node.motif, n.node.fill, n.node.ink) for n in placed.nodes if n.node.motif}
    motifs |= {(s.motif, s.fill or placed.theme.background, placed.theme.ink) for s in entries if s.motif}
    patterns = []
    for motif, fill, ink in sorted(motifs, key=str):
        assert motif is not None
        color = motif_ink(fill, ink)
        patterns.append(
            f'<pattern id="{_motif_id(motif, fill, ink)}" width="6" height="6" patternUnits="userSpaceOnUse">'
            f'<g stroke="{color}" stroke-width=".7" fill="{color}">{_PATTERNS[motif]}</g></pattern>'
        )
    return f"<defs>{''.join(patterns)}</defs>" if patterns else ""


def _motif_id(motif: Motif, fill: str, ink: str) -> str:
    return f"m-{motif}-{fill[1:]}-{ink[1:]}"


def _text(text: PlacedText) -> str:
    kind = " ".join(
        filter(None, ("b" if text.bold else "", {"middle": "m", "end": "e"}.get(text.anchor, "")))
    )
    style = f' class="{kind}"' if kind else ""
    return (
        f"{_plate(text) if text.plate else ''}"
        f'<text x="{num(text.x)}" y="{num(text.y)}" font-size="{num(text.size)}"{style} '
        f'fill="{text.ink}">{xml(text.text)}</text>'
    )


def _plate(text: PlacedText) -> str:
    rect = plate_of(text)
    place = f'x="{num(rect.x)}" y="{num(rect.y)}" width="{num(rect.width)}" height="{num(rect.height)}"'
    return f'<rect {place} rx="2" fill="{text.plate}"/>'


def _block(placed: Placed, name: str, block: PlacedBlock) -> list[str]:
    lines = [f'<g class="{name}">']
    for swatch in block.swatches:
        rect = swatch.rect
        frame = f'x="{num(rect.x)}" y="{num(rect.y)}" width="{num(rect.width)}" height="{num(rect.height)}"'
        dash = f' stroke-dasharray="{DASH}"' if swatch.dashed else ""
        round_off = ' rx="3"' if swatch.stroke else ""
        look = f'fill="{swatch.fill or "none"}" stroke="{swatch.stroke or "none"}"{dash}{round_off}'
        lines.append(f"<rect {frame} {look}/>")
        if swatch.motif:
            pattern = _motif_id(swatch.motif, swatch.fill or placed.theme.background, placed.theme.ink)
            lines.append(f'<rect {frame} fill="url(#{pattern})"{round_off}/>')
    lines += [_text(text) for text in block.texts]
    return [*lines, "</g>"] if len(lines) > 1 else []


def _graph(placed: Placed, ids: _Ids) -> list[str]:
    """Boxes as nested groups with their nodes, then the edges over the boxes' fills."""
    frames = [_frame(box) for box in placed.boxes]
    nodes: dict[str, list[str]] = defaultdict(list)
    for node in placed.nodes:
        nodes[node.node.scope].append(_node(node, ids))
    boxes: dict[str, list[PlacedBox]] = defaultdict(list)
    for box in placed.boxes:
        boxes[box.box.scope].append(box)
    return [
        '<g class="frames">',
        *frames,
        '</g><g class="edges">',
        *(_edge(edge) for edge in placed.edges),
        *(_stub(stub) for stub in placed.stubs),
        '</g><g class="nodes">',
        *_groups(nodes, boxes, ids),
        '</g><g class="labels">',
        *(_text(text) for edge in placed.edges for text in edge.texts),
        "</g>",
    ]


def _groups(nodes: dict[str, list[str]], boxes: dict[str, list[PlacedBox]], ids: _Ids) -> list[str]:
    lines = list(nodes.get(ROOT, ()))
    stack: list[PlacedBox | None] = list(reversed(boxes.get(ROOT, ())))
    while stack:
        box = stack.pop()
        if box is None:
            lines.append("</g>")
            continue
        lines.append(f'<g id="{ids.new(box.box.id)}" class="box">{_tip(box.box.tooltip)}')
        lines += [_text(text) for text in box.texts]
        lines += nodes.get(box.box.id, ())
        stack.append(None)
        stack += reversed(boxes.get(box.box.id, ()))
    return lines


def _tip(text: str) -> str:
    return f"<title>{_lines(text)}</title>" if text else ""


def _stroke(stroke: str, width: float, dashed: bool) -> str:
    dash = f' stroke-dasharray="{DASH}"' if dashed else ""
    return f'stroke="{stroke}" stroke-width="{num(width)}"{dash}'


def _frame(box: PlacedBox) -> str:
    rect, look = box.rect, box.box
    return (
        f'<rect x="{num(rect.x)}" y="{num(rect.y)}" width="{num(rect.width)}" height="{num(rect.height)}" '
        f'rx="{BOX_RADIUS}" fill="{look.fill}" {_stroke(look.stroke, look.stroke_width, look.dashed)}/>'
    )


def _outline(node: PlacedNode) -> str:
    rect = node.rect
    if node.node.shape == "ellipse":
        x, y = rect.center
        return f'<ellipse cx="{num(x)}" cy="{num(y)}" rx="{num(rect.width / 2)}" ry="{num(rect.height / 2)}"'
    if node.node.shape == "octagon":
        points = " ".join(f"{num(x)},{num(y)}" for x, y in octagon(rect))
        return f'<polygon points="{points}"'
    radius = f' rx="{num(min(RADIUS, rect.height / 2))}"' if node.node.shape == "rounded" else ""
    place = f'x="{num(rect.x)}" y="{num(rect.y)}" width="{num(rect.width)}" height="{num(rect.height)}"'
    return f"<rect {place}{radius}"


def _node(node: PlacedNode, ids: _Ids) -> str:
    look, outline = node.node, _outline(node)
    motif = f'{outline} fill="url(#{_motif_id(look.motif, look.fill, look.ink)})"/>' if look.motif else ""
    tip = _tip(look.tooltip or "\n".join(row.text for row in look.rows))
    return (
        f'<g id="{ids.new(look.id)}" class="node">{tip}'
        f'{outline} fill="{look.fill}" {_stroke(look.stroke, look.stroke_width, look.dashed)}/>{motif}'
        f"{''.join(_text(text) for text in node.texts)}</g>"
    )


def _edge(edge: PlacedEdge) -> str:
    curve = line_part(edge.curve, edge.arrow)
    (x, y), rest = curve[0], curve[1:]
    path = [f"M{num(x)} {num(y)}"]
    for k in range(0, len(rest), 3):
        path.append("C" + " ".join(f"{num(a)} {num(b)}" for a, b in rest[k : k + 3]))
    head = " ".join(f"{num(a)},{num(b)}" for a, b in edge.arrow)
    tip = _tip(edge.edge.tooltip or f"{edge.edge.source} → {edge.edge.target}")
    return (
        f'<g class="edge">{tip}<path d="{"".join(path)}" '
        f"{_stroke(edge.stroke, edge.width, edge.edge.dashed)}/>"
        f'<polygon points="{head}" fill="{edge.stroke}"/></g>'
    )


def _stub(stub: PlacedStub) -> str:
    (x0, y0), (x1, y1) = stub.line
    head = " ".join(f"{num(a)},{num(b)}" for a, b in stub.arrow)
    return (
        f'<g class="stub">{_tip(stub.tooltip)}<line x1="{num(x0)}" y1="{num(y0)}" x2="{num(x1)}" '
        f'y2="{num(y1)}" {_stroke(stub.stroke, 1, False)}/><polygon points="{head}" fill="{stub.stroke}"/>'
        f"{_text(stub.text)}</g>"
    )
