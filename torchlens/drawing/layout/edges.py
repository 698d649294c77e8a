"""Edges on the page: continuous lines with arrow heads and texts."""

from __future__ import annotations

from collections.abc import Callable

from torchlens.drawing.layout.compose import edge_curve
from torchlens.drawing.layout.draft import Draft
from torchlens.drawing.layout.labels import Surroundings, edge_texts, texts_of
from torchlens.drawing.layout.passing import Passing, Taken, flat
from torchlens.drawing.layout.placed import (
    Curve,
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

ARROW = (6.0, 2.4)
"""Length and half width of an arrow head on a line of width 1."""


def place_edges(
    draft: Draft,
    nodes: tuple[PlacedNode, ...],
    boxes: tuple[PlacedBox, ...],
    marks: tuple[PlacedStub, ...],
) -> tuple[PlacedEdge, ...]:
    """Draw every edge from producer to consumer, with its arrow head and texts."""
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
    draft: Draft,
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


def _ground(draft: Draft, number: int, frames: dict[int, PlacedBox]) -> Callable[[Point], str]:
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
