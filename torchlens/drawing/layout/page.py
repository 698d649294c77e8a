"""The whole page: the graph with its header, caption and legend above it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torchlens.drawing.layout.blocks import caption_block, header_block, legend_block
from torchlens.drawing.layout.compose import Composition, compose, edge_curve
from torchlens.drawing.layout.flow import Flow
from torchlens.drawing.layout.frames import Room, room_of
from torchlens.drawing.layout.harmony import harmonise
from torchlens.drawing.layout.labels import Surroundings, edge_texts, texts_of
from torchlens.drawing.layout.measure import Line, Measured, Sizer, beside, in_one_line, stacked
from torchlens.drawing.layout.passing import Passing, Taken, flat
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
    around_points,
    line_part,
    rect_of,
)
from torchlens.drawing.layout.stubs import Tags, choose, tags
from torchlens.drawing.layout.tags import place_tags
from torchlens.drawing.layout.tree import Routes, Tree, cut, grow
from torchlens.drawing.scene import Scene
from torchlens.drawing.themes import THEMES, Theme

MARGIN = 24.0
BLOCK_GAP = 8.0
GRAPH_GAP = 20.0
LEGEND_ROOM = 620.0
ARROW = (6.0, 2.4)
"""Length and half width of an arrow head on a line of width 1."""


@dataclass(slots=True)
class _Draft:
    """What the steps of one layout hand on to each other."""

    scene: Scene
    theme: Theme
    sizer: Sizer
    tree: Tree
    routes: Routes
    tags: dict[int, Tags]
    measured: list[Measured]
    rooms: list[Room]
    titles: dict[int, tuple[tuple[Line, ...], float, float]]
    composition: Composition
    flow: Flow


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


def _draft(scene: Scene, theme: Theme) -> tuple[_Draft, int]:
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
    draft = _Draft(scene, theme, sizer, tree, routes, tagged, measured, rooms, titles, composition, flow)
    return draft, len(chosen)


def _placed(
    draft: _Draft, blocks: tuple[PlacedBlock, PlacedBlock, PlacedBlock | None], stubs: int, width: float
) -> Placed:
    nodes = tuple(_node(draft, number) for number in range(draft.tree.nodes))
    boxes = tuple(_box(draft, number) for number in _outside_in(draft))
    tag_marks = tuple(_tags(draft, nodes))
    edges = _edges(draft, nodes, boxes, tag_marks)
    height = draft.flow.y + draft.flow.size[1] + MARGIN
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


def _outside_in(draft: _Draft) -> list[int]:
    count = draft.tree.nodes
    return sorted(range(count, count + len(draft.scene.boxes)), key=lambda box: draft.tree.depth[box])


def _node(draft: _Draft, number: int) -> PlacedNode:
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


def _box(draft: _Draft, number: int) -> PlacedBox:
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


def _tags(draft: _Draft, nodes: tuple[PlacedNode, ...]) -> list[PlacedStub]:
    marks: list[PlacedStub] = []
    for number in sorted(draft.tags):
        marks += place_tags(nodes[number], draft.tags[number], draft.theme, draft.scene.direction)
    return marks


def _edges(
    draft: _Draft,
    nodes: tuple[PlacedNode, ...],
    boxes: tuple[PlacedBox, ...],
    marks: tuple[PlacedStub, ...],
) -> tuple[PlacedEdge, ...]:
    curves: dict[int, Curve] = {}
    looks: dict[int, tuple[str, float, tuple[Point, Point, Point]]] = {}
    point, edges = draft.flow.point, draft.scene.edges
    for number in draft.routes.parts:
        curve = tuple(point(p) for p in edge_curve(draft.composition, draft.routes, number))
        source, target = (draft.tree.node_number[end] for end in (edges[number].source, edges[number].target))
        curves[number] = _to_rects(curve, nodes[source].rect, nodes[target].rect)
        edge = edges[number]
        stroke = edge.stroke or (draft.theme.back_edge if edge.back else draft.theme.edge)
        width = edge.stroke_width * draft.theme.edge_width
        looks[number] = stroke, width, arrow_head(curves[number], width)
    texts = _edge_texts(
        draft, {n: (curve, looks[n][2]) for n, curve in curves.items()}, (nodes, boxes, marks)
    )
    placed = []
    for number, curve in curves.items():
        stroke, width, arrow = looks[number]
        placed.append(PlacedEdge(edges[number], curve, arrow, stroke, width, texts.get(number, ())))
    return tuple(placed)


def _edge_texts(
    draft: _Draft,
    curves: dict[int, tuple[Curve, tuple[Point, Point, Point]]],
    parts: tuple[tuple[PlacedNode, ...], tuple[PlacedBox, ...], tuple[PlacedStub, ...]],
) -> dict[int, tuple[PlacedText, ...]]:
    """Place the texts of all edges, or nothing at no cost where no edge has one."""
    wanted = [number for number in curves if any(texts_of(draft.scene.edges[number]))]
    if not wanted:
        return {}
    nodes, boxes, marks = parts
    outside = [rect_of(text) for node in nodes if not node.text_inside for text in node.texts]
    taken = Taken(
        [
            *(n.rect for n in nodes),
            *(b.title for b in boxes),
            *outside,
            *(rect_of(mark.text) for mark in marks),
            *(around_points(arrow) for _, arrow in curves.values()),
        ]
    )
    lines = Passing()
    flats = {number: flat(line_part(*curve)) for number, curve in curves.items()}
    for number, line in flats.items():
        lines.add(line, number)
    frames = {}
    for box in boxes:
        lines.add_frame(box.rect)
        frames[draft.tree.box_number[box.box.id]] = box
    around = Surroundings(taken, lines, draft.theme, draft.sizer.scale)
    return {
        number: edge_texts(
            draft.scene.edges[number], flats[number], number, around, _ground(draft, number, frames)
        )
        for number in wanted
    }


def _ground(draft: _Draft, number: int, frames: dict[int, PlacedBox]) -> Callable[[Point], str]:
    """Return the function that tells the colour behind a point near an edge."""
    edge, tree = draft.scene.edges[number], draft.tree
    ways = (tree.way_up(tree.node_number[end]) for end in (edge.source, edge.target))
    around = sorted({box for way in ways for box in way}, key=lambda box: -tree.depth[box])

    def color(point: Point) -> str:
        for box in around:
            rect = frames[box].rect
            if rect.x <= point[0] <= rect.right and rect.y <= point[1] <= rect.bottom:
                return frames[box].box.fill
        return draft.theme.background

    return color


def _to_rects(curve: Curve, source: Rect, target: Rect) -> Curve:
    """Lead the ends of a line on to rectangles that are smaller than the room around them."""
    points = list(curve)
    for end, rect in ((0, source), (-1, target)):
        x, y = points[end]
        near = min(max(x, rect.x), rect.right), min(max(y, rect.y), rect.bottom)
        if abs(near[0] - x) + abs(near[1] - y) > 0.02:
            piece = [(x + (near[0] - x) * k / 3, y + (near[1] - y) * k / 3) for k in (1, 2, 3)]
            piece = [(round(a, 2), round(b, 2)) for a, b in piece]
            points = [*reversed(piece), *points] if end == 0 else [*points, *piece]
    return tuple(points)


def arrow_head(curve: Curve, width: float) -> tuple[Point, Point, Point]:
    """Return tip and base corners of the arrow head at the end of a line."""
    (x, y) = curve[-1]
    before = next((p for p in reversed(curve[:-1]) if abs(p[0] - x) + abs(p[1] - y) > 0.5), curve[0])
    dx, dy = x - before[0], y - before[1]
    span = (dx * dx + dy * dy) ** 0.5 or 1.0
    dx, dy = dx / span, dy / span
    grow_by = 0.8 + 0.2 * width
    long, half = ARROW[0] * grow_by, ARROW[1] * grow_by
    base = x - dx * long, y - dy * long
    return (
        (x, y),
        (round(base[0] - dy * half, 2), round(base[1] + dx * half, 2)),
        (round(base[0] + dy * half, 2), round(base[1] - dx * half, 2)),
    )
