"""JSON: the scene and its geometry as versioned data."""

from __future__ import annotations

import json as encoder
from dataclasses import asdict
from typing import Any

from torchlens.drawing.layout.placed import Placed, PlacedBlock
from torchlens.drawing.output.registry import writes

VERSION = 1


@writes("json")
def json(placed: Placed, *, dpi: int) -> bytes:
    """Write the picture as JSON.

    ``nodes``, ``boxes`` and ``edges`` hold the fields of the scene plus ``rect`` (x, y, width, height)
    or ``curve`` (Bezier points), in points from the top left corner.
    """
    del dpi
    scene = placed.scene
    data = {
        "format": "torchlens.drawing",
        "version": VERSION,
        "title": scene.title,
        "theme": placed.theme.name,
        "direction": scene.direction,
        "width": placed.width,
        "height": placed.height,
        "stub_edges": placed.stub_edges,
        "header": list(scene.header),
        "caption": list(scene.caption),
        "legend": asdict(scene.legend) if scene.legend else None,
        "blocks": {
            "header": _block(placed.header),
            "caption": _block(placed.caption),
            "legend": _block(placed.legend) if placed.legend else None,
        },
        "nodes": [_part(n.node, rect=asdict(n.rect), text_inside=n.text_inside) for n in placed.nodes],
        "boxes": [_part(b.box, rect=asdict(b.rect), depth=b.depth) for b in placed.boxes],
        "edges": [_part(e.edge, curve=e.curve) for e in placed.edges],
        "stubs": [{"node": s.node, "outgoing": s.outgoing, "text": s.text.text} for s in placed.stubs],
    }
    return (encoder.dumps(data, ensure_ascii=True, indent=1) + "\n").encode("ascii")


def _part(part: Any, **geometry: object) -> dict[str, object]:
    return {**asdict(part), **geometry}


def _block(block: PlacedBlock) -> dict[str, object]:
    return asdict(block.rect)
