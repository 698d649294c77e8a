"""DOT: the scene as Graphviz source with clusters, for those who want to lay it out themselves."""

from __future__ import annotations

from collections import defaultdict

from torchlens.drawing.layout.placed import Placed
from torchlens.drawing.output.registry import writes
from torchlens.drawing.scene import ROOT, Row, SceneBox, SceneEdge, SceneNode
from torchlens.drawing.text import clean

_RANKDIR = {"topdown": "TB", "bottomup": "BT", "leftright": "LR"}
_SHAPES = {"box": "box", "rounded": "box", "ellipse": "ellipse", "octagon": "octagon"}


@writes("dot")
def dot(placed: Placed, *, dpi: int) -> bytes:
    """Write the picture as DOT source; positions are left to the program that reads it."""
    del dpi
    scene, theme = placed.scene, placed.theme
    label = "\n".join([scene.title, *scene.header, *scene.caption])
    lines = [
        "digraph torchlens {",
        f"  graph [{_attributes(rankdir=_RANKDIR[scene.direction], bgcolor=theme.background, label=label)},"
        f" labelloc=t, labeljust=l, fontname=Inter, fontcolor={_quoted(theme.ink)}]",
        "  node [fontname=Inter, fontsize=10.5]",
        f"  edge [color={_quoted(theme.edge)}, arrowsize=0.6, fontname=Inter, fontsize=8.5]",
    ]
    nodes: dict[str, list[SceneNode]] = defaultdict(list)
    boxes: dict[str, list[SceneBox]] = defaultdict(list)
    for node in scene.nodes:
        nodes[node.scope].append(node)
    for box in scene.boxes:
        boxes[box.scope].append(box)
    numbers = {box.id: number for number, box in enumerate(scene.boxes)}
    lines += [f"  {_node(node)}" for node in nodes[ROOT]]
    stack: list[tuple[int, SceneBox | None]] = [(1, box) for box in reversed(boxes[ROOT])]
    while stack:
        depth, box_or_end = stack.pop()
        indent = "  " * depth
        if box_or_end is None:
            lines.append(f"{indent}}}")
            continue
        box = box_or_end
        lines.append(f'{indent}subgraph "cluster_{numbers[box.id]}" {{')
        lines.append(f"{indent}  graph [{_look(box.title, box)}]")
        lines += [f"{indent}  {_node(node)}" for node in nodes[box.id]]
        stack.append((depth, None))
        stack += [(depth + 1, inner) for inner in reversed(boxes[box.id])]
    lines += [f"  {_edge(edge)}" for edge in scene.edges]
    return "\n".join([*lines, "}\n"]).encode("utf-8")


def _quoted(text: str) -> str:
    """Quote for DOT; a backslash is doubled, for it would start an escape in a label."""
    inner = "\n".join(clean(line) for line in text.split("\n"))
    return '"' + inner.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _attributes(**values: str) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in values.items() if value)


def _look(rows: tuple[Row, ...], part: SceneNode | SceneBox) -> str:
    style = "filled" + (",dashed" if part.dashed else "")
    if isinstance(part, SceneBox) or part.shape == "rounded":
        style += ",rounded"
    return _attributes(
        label="\n".join(row.text for row in rows),
        style=style,
        fillcolor=part.fill,
        color=part.stroke,
        fontcolor=part.ink,
        penwidth=f"{part.stroke_width:g}",
        tooltip=part.tooltip,
    )


def _name(identity: str) -> str:
    return (
        '"'
        + identity.encode("unicode_escape").decode("ascii").replace("\\", "\\\\").replace('"', '\\"')
        + '"'
    )


def _node(node: SceneNode) -> str:
    return f"{_name(node.id)} [shape={_SHAPES[node.shape]}, {_look(node.rows, node)}]"


def _edge(edge: SceneEdge) -> str:
    label = edge.label or (f"×{edge.count}" if edge.count > 1 else "")
    style = "dashed" if edge.dashed else ""
    looks = _attributes(
        label=label,
        headlabel=edge.head,
        taillabel=edge.tail,
        style=style,
        color=edge.stroke or "",
        tooltip=edge.tooltip,
    )
    back = ["constraint=false"] if edge.back else []
    inner = ", ".join([*back, looks] if looks else back)
    return f"{_name(edge.source)} -> {_name(edge.target)}" + (f" [{inner}]" if inner else "")
