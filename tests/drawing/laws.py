"""Laws that every placed picture keeps, checked from its geometry alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from torchlens.drawing.layout.placed import Curve, Placed, PlacedEdge, PlacedNode, Rect, line_part, rect_of

SLACK = 0.75


def sample(curve: Curve, steps: int = 12) -> Iterator[tuple[float, float]]:
    """Points along a curve, evaluated with the textbook formula."""
    assert len(curve) % 3 == 1, "a Bezier curve has 3k + 1 points"
    for k in range(0, len(curve) - 1, 3):
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = curve[k : k + 4]
        for step in range(steps + 1):
            t = step / steps
            s = 1 - t
            yield (
                s**3 * ax + 3 * s * s * t * bx + 3 * s * t * t * cx + t**3 * dx,
                s**3 * ay + 3 * s * s * t * by + 3 * s * t * t * cy + t**3 * dy,
            )


def contains(outer: Rect, inner: Rect, slack: float = SLACK) -> bool:
    return (
        outer.x - slack <= inner.x
        and outer.y - slack <= inner.y
        and inner.x + inner.width <= outer.x + outer.width + slack
        and inner.y + inner.height <= outer.y + outer.height + slack
    )


def overlap(a: Rect, b: Rect) -> bool:
    return (
        min(a.x + a.width, b.x + b.width) - max(a.x, b.x) > SLACK
        and min(a.y + a.height, b.y + b.height) - max(a.y, b.y) > SLACK
    )


def on_border(rect: Rect, point: tuple[float, float]) -> bool:
    x, y = point
    across = rect.x - SLACK <= x <= rect.x + rect.width + SLACK
    along = rect.y - SLACK <= y <= rect.y + rect.height + SLACK
    near_x = min(abs(x - rect.x), abs(x - rect.x - rect.width)) <= SLACK
    near_y = min(abs(y - rect.y), abs(y - rect.y - rect.height)) <= SLACK
    return (across and near_y) or (along and near_x)


def overlapping(rects: Iterable[Rect]) -> list[tuple[Rect, Rect]]:
    """Pairs that overlap, by a sweep over y."""
    found, active = [], []
    for rect in sorted(rects, key=lambda r: r.y):
        active = [other for other in active if other.y + other.height > rect.y + SLACK]
        found += [(other, rect) for other in active if overlap(other, rect)]
        active.append(rect)
    return found


def scope_chains(placed: Placed) -> dict[str, list[str]]:
    around = {box.box.id: box.box.scope for box in placed.boxes}
    chains: dict[str, list[str]] = {"": []}
    for name in around:
        chain, scope = [], name
        while scope:
            chain.append(scope)
            scope = around[scope]
        chains[name] = chain
    return chains


def check_boxes(placed: Placed) -> None:
    chains = scope_chains(placed)
    rects = {box.box.id: box.rect for box in placed.boxes}
    names = list(rects)
    for k, a in enumerate(names):
        for b in names[k + 1 :]:
            if b in chains[a]:
                assert contains(rects[b], rects[a]), f"{a} sticks out of {b}"
            elif a in chains[b]:
                assert contains(rects[a], rects[b]), f"{b} sticks out of {a}"
            else:
                assert not overlap(rects[a], rects[b]), f"{a} and {b} overlap"


def check_nodes(placed: Placed) -> None:
    rects = {box.box.id: box.rect for box in placed.boxes}
    chains = scope_chains(placed)
    assert not overlapping(node.rect for node in placed.nodes)
    for node in placed.nodes:
        if node.node.scope:
            assert contains(rects[node.node.scope], node.rect), f"{node.node.id} leaves its box"
        for name, rect in rects.items():
            if name not in chains[node.node.scope]:
                assert not overlap(rect, node.rect), f"{node.node.id} stands in the foreign box {name}"
        assert contains(Rect(0, 0, placed.width, placed.height), node.rect)


def check_edges(placed: Placed) -> None:
    nodes = {node.node.id: node for node in placed.nodes}
    for edge in placed.edges:
        source, target = nodes[edge.edge.source], nodes[edge.edge.target]
        assert on_border(source.rect, edge.curve[0]), f"{edge.edge} does not start at its producer"
        assert on_border(target.rect, edge.curve[-1]), f"{edge.edge} does not end at its consumer"
        assert edge.arrow[0] == edge.curve[-1]
        for x, y in edge.curve:
            assert -SLACK <= x <= placed.width + SLACK
            assert -SLACK <= y <= placed.height + SLACK
    check_passing(placed, nodes)


def check_passing(placed: Placed, nodes: dict[str, PlacedNode]) -> None:
    """No line runs through a node that it does not belong to."""
    cell = 80.0
    grid: dict[tuple[int, int], list[PlacedNode]] = {}
    for node in placed.nodes:
        rect = node.rect
        for cx in range(int(rect.x // cell), int((rect.x + rect.width) // cell) + 1):
            for cy in range(int(rect.y // cell), int((rect.y + rect.height) // cell) + 1):
                grid.setdefault((cx, cy), []).append(node)
    for edge in placed.edges:
        own = {edge.edge.source, edge.edge.target}
        for x, y in sample(edge.curve):
            for node in grid.get((int(x // cell), int(y // cell)), ()):
                rect = node.rect
                inside = (
                    rect.x + SLACK < x < rect.x + rect.width - SLACK
                    and rect.y + SLACK < y < rect.y + rect.height - SLACK
                )
                assert not inside or node.node.id in own, f"{edge.edge} runs through {node.node.id}"
                if inside:
                    deep = min(x - rect.x, rect.x + rect.width - x, y - rect.y, rect.y + rect.height - y)
                    assert deep < 2.5, f"{edge.edge} runs through its own end {node.node.id}"


def check_flow(placed: Placed) -> None:
    """Every consumer stands after its producer, unless the edge is marked as recurrence."""
    nodes = {node.node.id: node.rect for node in placed.nodes}
    for edge in placed.edges:
        if edge.edge.back:
            continue
        a, b = nodes[edge.edge.source], nodes[edge.edge.target]
        if placed.scene.direction == "topdown":
            assert a.y + a.height < b.y, f"{edge.edge} runs against the flow"
        elif placed.scene.direction == "bottomup":
            assert b.y + b.height < a.y, f"{edge.edge} runs against the flow"
        else:
            assert a.x + a.width < b.x, f"{edge.edge} runs against the flow"


def check_texts(placed: Placed) -> None:
    """Texts of edges cover neither each other nor nodes nor titles; lines run only below plates."""
    texts = [text for edge in placed.edges for text in edge.texts]
    rects = [rect_of(text) for text in texts]
    assert not overlapping(rects), "texts of edges overlap"
    others = [node.rect for node in placed.nodes]
    others += [box.title for box in placed.boxes]
    others += [rect_of(text) for node in placed.nodes if not node.text_inside for text in node.texts]
    others += [rect_of(stub.text) for stub in placed.stubs]
    for rect in rects:
        assert not any(overlap(rect, other) for other in others), "a text of an edge covers something"
    for text, rect in zip(texts, rects, strict=True):
        inner = Rect(rect.x + 0.5, rect.y + 0.5, rect.width - 1, rect.height - 1)
        crossed = any(_crossed(inner, edge) for edge in placed.edges)
        assert text.plate or not crossed, f"a line runs through {text.text!r}"


def _crossed(rect: Rect, edge: PlacedEdge) -> bool:
    curve = line_part(edge.curve, edge.arrow)
    xs, ys = zip(*curve, strict=True)
    if max(xs) < rect.x or min(xs) > rect.right or max(ys) < rect.y or min(ys) > rect.bottom:
        return False
    points = list(sample(curve, 12))
    for (ax, ay), (bx, by) in itertools.pairwise(points):
        steps = int(max(abs(bx - ax), abs(by - ay)) / 1.5) + 1
        for k in range(steps + 1):
            x, y = ax + (bx - ax) * k / steps, ay + (by - ay) * k / steps
            if rect.x < x < rect.right and rect.y < y < rect.bottom:
                return True
    return False


def check_all(placed: Placed) -> None:
    check_boxes(placed)
    check_nodes(placed)
    check_edges(placed)
    check_texts(placed)
    if not placed.scene.wrap and all(node.node.column is None for node in placed.nodes):
        check_flow(placed)
