"""The first layout of a view, so that the page has nothing to compute before it shows something."""

from __future__ import annotations

from typing import Any

from torchlens.drawing.layout import lay_out
from torchlens.drawing.layout.placed import Placed, PlacedEdge
from torchlens.drawing.page.view import Picture
from torchlens.drawing.page.visible import scene_of, visible
from torchlens.drawing.settings import Settings


def first_layout(picture: Picture, settings: Settings, most: int) -> dict[str, Any] | None:
    """Positions of what is visible at first; nothing for more than ``most`` nodes.

    Returns
    -------
    dict or None
        ``nodes``: number, x, y, width, height, one after the other.  ``boxes``: the same, then x and y of
        the title.  ``edges``: source, target, and the points of the curve.  ``texts``: edge, text, x, y,
        anchor.
    """
    seen = visible(picture.root, picture.focus)
    if not 0 < len(seen.nodes) <= most:
        return None
    scene = scene_of(
        seen,
        picture.wires,
        picture.nodes,
        picture.boxes,
        direction=settings["direction"],
        font_size=settings["font_size"],
    )
    return _encoded(lay_out(scene))


def _encoded(placed: Placed) -> dict[str, Any]:
    rects = [*(node.rect for node in placed.nodes), *(box.rect for box in placed.boxes)]
    left, top = min(rect.x for rect in rects), min(rect.y for rect in rects)

    def moved(x: float, y: float) -> list[float]:
        return [_short(x - left), _short(y - top)]

    nodes, boxes = [], []
    for node in placed.nodes:
        size = [_short(node.rect.width), _short(node.rect.height)]
        nodes += [int(node.node.id), *moved(node.rect.x, node.rect.y), *size]
    for box in placed.boxes:
        size = [_short(box.rect.width), _short(box.rect.height)]
        boxes += [int(box.box.id), *moved(box.rect.x, box.rect.y), *size, *moved(box.title.x, box.title.y)]
    edges = [[*_ends(edge), *(v for point in edge.curve for v in moved(*point))] for edge in placed.edges]
    texts = [
        [k, text.text, *moved(text.x, text.y), text.anchor]
        for k, edge in enumerate(placed.edges)
        for text in edge.texts
    ]
    return {"nodes": nodes, "boxes": boxes, "edges": edges, "texts": texts}


def _ends(edge: PlacedEdge) -> tuple[int, int]:
    return int(edge.edge.source), int(edge.edge.target)


def _short(value: float) -> float:
    rounded = round(value, 1)
    return int(rounded) if rounded.is_integer() else rounded
