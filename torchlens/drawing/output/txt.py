"""Plain text: the graph as an indented list, for terminals and bug reports."""

from __future__ import annotations

from collections import defaultdict

from torchlens.drawing.layout.placed import Placed
from torchlens.drawing.output.registry import writes
from torchlens.drawing.scene import ROOT, Row, Scene, SceneBox, SceneNode
from torchlens.drawing.text import clean


@writes("txt")
def txt(placed: Placed, *, dpi: int) -> bytes:
    """Write one line a node, indented by its boxes, with the nodes that feed it."""
    del dpi
    scene = placed.scene
    lines = [scene.title, *scene.header, *scene.caption, ""]
    lines = [clean(line) for line in lines] + _graph(scene)
    if scene.legend:
        lines += ["", *(f"legend: {clean(entry.text)}" for entry in scene.legend.entries)]
        for ramp in scene.legend.ramps:
            scale = f"{ramp.title}: {ramp.minimum}, median {ramp.median}, {ramp.maximum}"
            lines.append(f"legend: {clean(scale)}")
    return ("\n".join(lines) + "\n").encode("utf-8", errors="replace")


def _graph(scene: Scene) -> list[str]:
    parents: dict[str, list[str]] = defaultdict(list)
    rows = {node.id: node.rows for node in scene.nodes}
    for edge in scene.edges:
        name = _first(rows[edge.source]) or clean(edge.source)
        times = f" ×{edge.count}" if edge.count > 1 else ""
        label = f" [{clean(edge.label)}]" if edge.label else ""
        parents[edge.target].append(f"{name}{times}{label}{' (recurrent)' if edge.back else ''}")
    inside: dict[str, list[SceneNode | SceneBox]] = defaultdict(list)
    parts: list[SceneNode | SceneBox] = [*scene.nodes, *scene.boxes]
    for part in parts:
        inside[part.scope].append(part)
    order = _first_use(scene)
    lines: list[str] = []
    stack: list[tuple[int, SceneNode | SceneBox]] = []

    def open_scope(scope: str, depth: int) -> None:
        parts = sorted(inside[scope], key=lambda part: order.get((type(part).__name__, part.id), 0))
        stack.extend((depth, part) for part in reversed(parts))

    open_scope(ROOT, 0)
    while stack:
        depth, part = stack.pop()
        if isinstance(part, SceneBox):
            lines.append("  " * depth + "▾ " + _words(part.title))
            open_scope(part.id, depth + 1)
        else:
            fed = parents.get(part.id)
            lines.append("  " * depth + _words(part.rows) + (f"  ← {', '.join(fed)}" if fed else ""))
    return lines


def _first_use(scene: Scene) -> dict[tuple[str, str], int]:
    """Order nodes as the scene lists them, and boxes by their first node."""
    order = {("SceneNode", node.id): number for number, node in enumerate(scene.nodes)}
    around = {box.id: box.scope for box in scene.boxes}
    for number, node in enumerate(scene.nodes):
        scope = node.scope
        while scope != ROOT and ("SceneBox", scope) not in order:
            order[("SceneBox", scope)] = number
            scope = around[scope]
    return order


def _first(rows: tuple[Row, ...]) -> str:
    return clean(rows[0].text) if rows else ""


def _words(rows: tuple[Row, ...]) -> str:
    return " · ".join(clean(row.text) for row in rows if row.text)
