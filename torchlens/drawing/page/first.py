"""The first layout of a view, so that the page has nothing to compute before it shows something."""

from __future__ import annotations

from typing import Any

from torchlens.drawing.layout import lay_out
from torchlens.drawing.layout.placed import Placed, PlacedEdge
from torchlens.drawing.page.tree import Group, groups, open_default, open_where
from torchlens.drawing.page.view import Picture
from torchlens.drawing.page.visible import scene_of, visible
from torchlens.drawing.plan import plan
from torchlens.drawing.settings import Settings

BUDGETS = (44, 32, 24, 20, 16, 10)
"""Nodes visible at first: the largest number with which all of the picture can be read at once."""
FOCUS_BUDGET = 90
"""The same inside of one module, which is drawn open whatever its size."""
ROOM = (940.0, 660.0)
"""Width and height that a picture has on the first screen."""
READABLE = 0.8
"""Scale from which on text can be read."""
FEW = 8
"""Fewer nodes say too little, if with more of them the picture stays larger than ``SCROLLED``."""
SCROLLED = 0.45
MOST = 400
"""Larger pictures are laid out by the page itself."""


def begin(picture: Picture, settings: Settings) -> dict[str, Any] | None:
    """Open what a view opens with, and lay that out.

    Returns
    -------
    dict or None
        ``nodes``: number, x, y, width, height, one after the other.  ``boxes``: the same, then x and y of
        the title.  ``edges``: source, target, and the points of the curve.  ``texts``: edge, text, x, y,
        anchor.  ``None`` for a picture that the page had better lay out itself.
    """
    root = picture.root
    open_where(root, lambda group: False)
    if any(settings.explicit(name) for name in ("collapse", "depth")):
        drawn = set(plan(picture.graph, settings).shape.boxes)
        open_where(root, lambda group: group.kind != "call" or set(group.scopes) <= drawn)
        return _laid_out(picture, settings)
    inside = [item for item in picture.focus if isinstance(item, Group)]
    if inside:
        open_default(root, budget=FOCUS_BUDGET, inside=inside)
        return _laid_out(picture, settings)
    return _readable(picture, settings)


def _readable(picture: Picture, settings: Settings) -> dict[str, Any] | None:
    """Open as much as can be read at once; a little more where that would tell next to nothing."""
    tried: list[tuple[float, list[Group], dict[str, Any] | None]] = []
    for budget in BUDGETS:
        open_where(picture.root, lambda group: False)
        open_default(picture.root, budget=budget)
        opened = [group for group in groups(picture.root) if group.open]
        if not tried or opened != tried[-1][1]:
            laid = _laid_out(picture, settings)
            tried.append((_scale(laid), opened, laid))
            if tried[-1][0] >= READABLE:
                break
    best = max(range(len(tried)), key=lambda k: tried[k][0])
    laid = tried[best][2]
    if best and laid is not None and len(laid["nodes"]) < 5 * FEW and tried[best - 1][0] >= SCROLLED:
        best -= 1
    chosen = set(tried[best][1])
    open_where(picture.root, lambda group: group in chosen)
    return tried[best][2]


def _scale(laid: dict[str, Any] | None) -> float:
    if laid is None:
        return 0.0
    rects = [laid["nodes"][k : k + 5] for k in range(0, len(laid["nodes"]), 5)]
    rects += [laid["boxes"][k : k + 5] for k in range(0, len(laid["boxes"]), 7)]
    width = max(x + wide for _, x, _, wide, _ in rects)
    height = max(y + high for _, _, y, _, high in rects)
    return float(min(ROOM[0] / width, ROOM[1] / height))


def _laid_out(picture: Picture, settings: Settings) -> dict[str, Any] | None:
    seen = visible(picture.root, picture.focus)
    if not 0 < len(seen.nodes) <= MOST:
        return None
    direction, font_size = settings["direction"], settings["font_size"]
    scene = scene_of(
        seen, picture.wires, picture.nodes, picture.boxes, direction=direction, font_size=font_size
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
