"""From the visible graph to the scene: looks, texts, boxes, lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchlens.drawing.fold import Line, Shape, Shown
from torchlens.drawing.graph import Scope
from torchlens.drawing.lines import Names, arms_of, line_texts
from torchlens.drawing.marks import Mark, is_unreached, outcome_rows, role_look, role_of, unreached
from torchlens.drawing.rows import class_of, cost_rows, node_rows, saved_rows, scope_title
from torchlens.drawing.scene import ROOT, Row, Scene, SceneBox, SceneEdge, SceneNode
from torchlens.drawing.settings import Settings, Source, resolve
from torchlens.drawing.spec import DrawnNode, NodeSpec, checked_spec
from torchlens.drawing.themes import THEMES, Theme
from torchlens.drawing.tooltips import tooltip

ORPHANS = "orphans"
"""Id of the group around what no path joins to an input or output."""


@dataclass(slots=True)
class Overlay:
    """What channels, marks and views lay over the nodes; each entry is a layer of the one rule."""

    marks: Mapping[Shown, Mark] = field(default_factory=dict)
    channel: Mapping[Shown, Mapping[str, Any]] = field(default_factory=dict)
    styling: Mapping[Shown, Mark] = field(default_factory=dict)
    columns: Mapping[Shown, int] = field(default_factory=dict)
    box_columns: Mapping[Scope, int] = field(default_factory=dict)
    edge_heads: Mapping[tuple[int, str], str] = field(default_factory=dict)


def assemble(shape: Shape, settings: Settings, overlay: Overlay | None = None) -> Scene:
    """Make the scene of a visible graph, without header, caption and legend."""
    return _Assembly(shape, settings, overlay or Overlay()).scene()


class _Assembly:
    def __init__(self, shape: Shape, settings: Settings, overlay: Overlay) -> None:
        self.shape = shape
        self.settings = settings
        self.overlay = overlay
        self.theme: Theme = THEMES[settings["theme"]]
        self.trace = shape.graph.trace
        self.unreached = unreached(self.trace)
        self.names = Names(self.overlay.edge_heads, arms_of(self.trace))
        self.orphans = self.trace._orphans if settings["show_orphans"] else set()
        self.ids = _ids(shape)
        self.box_ids: dict[Scope, str] = self.ids[1]

    def scene(self) -> Scene:
        """The parts in their order."""
        nodes = [self._node(node) for node in self.shape.nodes]
        boxes = [self._box(scope) for scope in self.shape.boxes]
        if any(node.scope == ORPHANS for node in nodes):
            boxes.append(self._orphan_box())
        wrap = bool(self.settings["wrap"])
        return Scene(
            title=self.trace.name,
            nodes=nodes,
            boxes=boxes,
            edges=[edge for line in self.shape.lines for edge in self._edges(line)],
            direction=self.settings["direction"],
            theme=self.settings["theme"],
            long_edges=self.settings["long_edges"],
            wrap=wrap,
            font_size=self.settings["font_size"],
        )

    # -- nodes ---------------------------------------------------------------------------------

    def _node(self, node: Shown) -> SceneNode:
        spec = self._spec(node)
        around = self.box_ids.get(node.around, ROOT)
        if node.around is self.shape.graph.root and self.orphans and self._is_orphan(node):
            around = ORPHANS
        return SceneNode(
            id=self.ids[0][node],
            rows=tuple(row if isinstance(row, Row) else Row(row) for row in spec.rows),
            scope=around,
            fill=spec.fill,
            ink=spec.ink,
            stroke=spec.stroke,
            stroke_width=spec.stroke_width,
            dashed=spec.dashed,
            shape=spec.shape,
            motif=spec.motif,
            tooltip=spec.tooltip,
            size=spec.size,
            column=self.overlay.columns.get(node),
        )

    def _is_orphan(self, node: Shown) -> bool:
        return all(op.step in self.orphans for unit in node.units for op in unit.ops)

    def _spec(self, node: Shown) -> NodeSpec:
        """The look of a node, layer over layer; a user's function has the last word."""
        mark = self.overlay.marks.get(node, Mark())
        styling = self.overlay.styling.get(node, Mark())
        layers: dict[Source, Mapping[str, Any]] = {
            "theme": self._plain(node),
            "mark": mark.look,
            "channel": self.overlay.channel.get(node, {}),
            "styling": styling.look,
        }
        look = {name: setting.value for name, setting in resolve(layers).items()}
        look["ink"] = self.theme.ink_on(look["fill"])
        spec = NodeSpec(rows=(*self._rows(node), *mark.rows, *styling.rows), **look)
        function = self.settings["node_spec_fn"]
        return spec if function is None else self._users(function, node, spec)

    def _plain(self, node: Shown) -> dict[str, Any]:
        look = role_look(role_of(node), self.theme, dashed=is_unreached(node, self.unreached))
        look["shape"] = "box" if node.kind != "unit" else "rounded"
        look["tooltip"] = tooltip(node)
        return look

    def _rows(self, node: Shown) -> list[Row]:
        rows = [*node_rows(node, self.settings), *outcome_rows(node)]
        if node.kind == "unit" and not node.stub:
            if self.settings["node_style"] == "profiling":
                rows += cost_rows(node.unit)
            if self.settings["show_saved_for_backward"]:
                rows += saved_rows(node.unit)
        return rows

    def _users(self, function: Callable[..., Any], node: Shown, spec: NodeSpec) -> NodeSpec:
        drawn = drawn_node(node, rolled=self.shape.graph.rolled)
        try:
            value = function(drawn, spec)
        except Exception as error:
            if hasattr(error, "add_note"):
                error.add_note(f"torchlens: node_spec_fn raised for the node {drawn.label!r}")
            raise
        if value is None:
            return spec
        changed = checked_spec(value, drawn)
        if changed.fill != spec.fill and changed.ink == spec.ink:
            from dataclasses import replace

            changed = replace(changed, ink=self.theme.ink_on(changed.fill))
        return changed

    # -- boxes and lines -----------------------------------------------------------------------

    def _box(self, scope: Scope) -> SceneBox:
        depth, parent = 0, scope.parent
        around = self.box_ids.get(parent, ROOT) if parent is not None else ROOT
        while parent is not None and parent in self.box_ids:
            depth, parent = depth + 1, parent.parent
        title = scope_title(scope)
        return SceneBox(
            id=self.box_ids[scope],
            title=(Row(title, "title"),),
            scope=around,
            fill=self.theme.box_fill(depth),
            ink=self.theme.box_ink,
            stroke=self.theme.box_stroke,
            stroke_width=self.theme.box_width,
            tooltip="\n".join([title, *(f"in {c.label} · {c.module.class_name}" for c in scope.wrappers)]),
            column=self.overlay.box_columns.get(scope),
        )

    def _orphan_box(self) -> SceneBox:
        title = (Row("joined to no input or output", "title"),)
        return SceneBox(
            id=ORPHANS,
            title=title,
            fill=self.theme.background,
            ink=self.theme.box_ink,
            stroke=self.theme.box_stroke,
            stroke_width=self.theme.box_width,
            dashed=True,
        )

    def _edges(self, line: Line) -> list[SceneEdge]:
        source, target = self.ids[0][line.source], self.ids[0][line.target]
        dashed = is_unreached(line.source, self.unreached) or line.source.stub or line.target.stub
        return [
            SceneEdge(
                source=source,
                target=target,
                label=texts.label,
                head=texts.head,
                back=line.back,
                dashed=dashed,
                count=texts.tensors,
                tooltip=texts.tooltip,
            )
            for texts in line_texts(line, self.settings, self.names)
        ]


def drawn_node(node: Shown, *, rolled: bool) -> DrawnNode:
    """What a user's function sees of a node."""
    ops = tuple(op for unit in node.units for op in unit.ops)
    if node.kind != "unit":
        call = node.scopes[0].calls[0]
        return DrawnNode(call.label, None, None, call, ops)
    unit = node.unit
    return DrawnNode(
        unit.part.label, None if rolled else unit.op, unit.op.layer if rolled else None, None, ops
    )


def _ids(shape: Shape) -> tuple[dict[Shown, str], dict[Scope, str]]:
    """An id for each node and box: its label, with a number where a label is taken."""
    taken = {ROOT, ORPHANS}
    boxes: dict[Scope, str] = {}
    nodes: dict[Shown, str] = {}
    for node in shape.nodes:
        name = node.unit.part.label if node.kind == "unit" else node.scopes[0].calls[0].label
        nodes[node] = _free(name, taken)
    for scope in shape.boxes:
        boxes[scope] = _free(scope.calls[0].label or class_of(scope), taken)
    return nodes, boxes


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = f"{name} [{number}]", number + 1
    taken.add(free)
    return free
