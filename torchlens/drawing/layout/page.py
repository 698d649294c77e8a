"""The whole page: the graph with its header, caption and legend above it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from torchlens.drawing.layout.blocks import caption_block, header_block, legend_block
from torchlens.drawing.layout.compose import compose
from torchlens.drawing.layout.draft import Draft
from torchlens.drawing.layout.edges import place_edges
from torchlens.drawing.layout.flow import Flow
from torchlens.drawing.layout.frames import room_of
from torchlens.drawing.layout.harmony import harmonise
from torchlens.drawing.layout.measure import Sizer, beside, in_one_line, stacked
from torchlens.drawing.layout.placed import (
    Placed,
    PlacedBlock,
    PlacedBox,
    PlacedNode,
    PlacedStub,
    Rect,
    rect_of,
)
from torchlens.drawing.layout.stubs import choose, tags
from torchlens.drawing.layout.tags import place_tags
from torchlens.drawing.layout.tree import cut, grow
from torchlens.drawing.scene import Scene
from torchlens.drawing.themes import THEMES, Theme

MARGIN = 24.0
BLOCK_GAP = 8.0
GRAPH_GAP = 20.0
LEGEND_ROOM = 620.0


def lay_out(scene: Scene) -> Placed:
    """Give every part of a scene its place.

    Parameters
    ----------
    scene : Scene
        The picture without positions; it stays as it is.

    Returns
    -------
    Placed
        Positions in points, with the scene and theme that they belong to.

    Raises
    ------
    SceneError
        If the scene contradicts itself.
    """
    with _without_collector():
        return _laid_out(scene)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the cyclic collector, which else walks a large trace again and again; layout makes no cycles."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _laid_out(scene: Scene) -> Placed:
    theme = THEMES[scene.theme]
    header = header_block(scene.title, scene.header, theme, MARGIN, MARGIN)
    caption = caption_block(scene.caption, theme, MARGIN, header.rect.bottom + BLOCK_GAP)
    draft, chosen = _draft(scene, theme)
    wide = draft.flow.size[0]
    bottom, legend = caption.rect.bottom if scene.caption else header.rect.bottom, None
    if scene.legend:
        room = max(LEGEND_ROOM, wide)
        legend = legend_block(scene.legend, theme, MARGIN, bottom + BLOCK_GAP + 4, room)
        bottom = legend.rect.bottom
    across = max(header.rect.width, caption.rect.width, legend.rect.width if legend else 0.0)
    x = MARGIN + max(0.0, (across - wide) / 2) if across < 1.2 * wide else MARGIN
    draft.flow = Flow(scene.direction, draft.flow.across, draft.flow.along, x, bottom + GRAPH_GAP)
    return _placed(draft, (header, caption, legend), chosen, max(across, x - MARGIN + wide) + 2 * MARGIN)


def _draft(scene: Scene, theme: Theme) -> tuple[Draft, int]:
    """Measure, choose tags, and lay out the graph alone; also return how many edges became tags."""
    sizer = Sizer.of(scene, theme)
    tree = grow(scene)
    routes = cut(scene, tree)
    chosen = choose(scene, tree, routes)
    if chosen:
        routes = cut(scene, tree, without=chosen)
    tagged = tags(scene, tree, chosen)
    measured = [sizer.node(node) for node in scene.nodes]
    rooms = [room_of(m, tagged.get(k), scene.direction) for k, m in enumerate(measured)]
    titles = {tree.nodes + k: sizer.title(box) for k, box in enumerate(scene.boxes)}
    sizes = {box: (wide, high) for box, (_, wide, high) in titles.items()}
    harmonise(scene, tree, routes, rooms, sizes)
    composition = compose(scene, tree, routes, rooms, sizes, theme.label_size * sizer.scale)
    flow = Flow(scene.direction, composition.width, composition.height)
    draft = Draft(scene, theme, sizer, tree, routes, tagged, measured, rooms, titles, composition, flow)
    return draft, len(chosen)


def _placed(
    draft: Draft, blocks: tuple[PlacedBlock, PlacedBlock, PlacedBlock | None], stubs: int, width: float
) -> Placed:
    nodes = tuple(_node(draft, number) for number in range(draft.tree.nodes))
    boxes = tuple(_box(draft, number) for number in _outside_in(draft))
    tag_marks = tuple(_tags(draft, nodes))
    edges = place_edges(draft, nodes, boxes, tag_marks)
    height = draft.flow.y + draft.flow.size[1] + MARGIN
    for text in (text for edge in edges for text in edge.texts):
        reach = rect_of(text)
        width, height = max(width, reach.right + MARGIN), max(height, reach.bottom + MARGIN)
    return Placed(
        draft.scene,
        draft.theme,
        round(width, 2),
        round(height, 2),
        nodes,
        boxes,
        edges,
        tag_marks,
        *blocks,
        stubs,
    )


def _outside_in(draft: Draft) -> list[int]:
    count = draft.tree.nodes
    return sorted(range(count, count + len(draft.scene.boxes)), key=lambda box: draft.tree.depth[box])


def _node(draft: Draft, number: int) -> PlacedNode:
    node, measured = draft.scene.nodes[number], draft.measured[number]
    room = draft.rooms[number]
    item = room.item(draft.scene.direction, None)
    outer = draft.flow.rect(*draft.composition.corners[number], item.width, item.height)
    rect = room.rect(outer.x, outer.y)
    if not measured.beside:
        return PlacedNode(node, rect, stacked(measured.lines, rect, draft.theme, node))
    ink = draft.theme.ink
    if draft.scene.direction == "leftright":
        x, middle = rect.x, rect.bottom + 4 + sum(line.height for line in measured.lines) / 2
    else:
        x, middle = rect.right + 5, rect.center[1]
    texts = beside(measured.lines, x, middle, ink=ink, quiet=draft.theme.muted)
    return PlacedNode(node, rect, texts, False)


def _box(draft: Draft, number: int) -> PlacedBox:
    box, frame = draft.scene.boxes[number - draft.tree.nodes], draft.composition.frames[number]
    lines, wide, high = draft.titles[number]
    x, y = draft.composition.corners[number]
    rect = draft.flow.rect(x, y, frame.width, frame.height)
    if draft.scene.direction == "leftright":
        corner = rect.x + frame.title_y, rect.y
    else:
        corner = rect.x + frame.title_x, rect.y
    title = Rect(round(corner[0], 2), round(corner[1] + 4, 2), round(wide, 2), round(high, 2))
    quiet = draft.theme.muted_on(box.fill, box.ink)
    texts = in_one_line(lines, title.x, title.y, title.height, ink=box.ink, quiet=quiet)
    return PlacedBox(box, rect, draft.tree.depth[number], texts, title)


def _tags(draft: Draft, nodes: tuple[PlacedNode, ...]) -> list[PlacedStub]:
    marks: list[PlacedStub] = []
    for number in sorted(draft.tags):
        marks += place_tags(nodes[number], draft.tags[number], draft.theme, draft.scene.direction)
    return marks
