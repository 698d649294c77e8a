"""Nodes and lines of one graph, made once and used by every view of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchlens.drawing.assemble import Overlay, assemble
from torchlens.drawing.fold import Shape, Shown, show
from torchlens.drawing.graph import Graph
from torchlens.drawing.lines import Names, arms_of, line_texts
from torchlens.drawing.marks import Mark, is_unreached, outcome_rows, role_look, role_of, unreached
from torchlens.drawing.page.looks import BASE
from torchlens.drawing.page.tree import Group, groups
from torchlens.drawing.page.visible import Wire
from torchlens.drawing.rows import cost_rows, node_rows, saved_rows
from torchlens.drawing.scene import Row, SceneNode
from torchlens.drawing.settings import Settings
from torchlens.drawing.themes import THEMES


class Parts:
    """The picture with every op, and each module call and run as it looks closed.

    Attributes
    ----------
    full : Shape
        Every op.
    everything : Shape
        The same, and after it every closed group of ``closed``, in their order.
    """

    def __init__(self, graph: Graph, root: Group) -> None:
        self.graph = graph
        self.root = root
        self.full = show(graph)
        self.closed = {group: _closed(group) for group in groups(root) if group.kind in ("call", "run")}
        nodes = [*self.full.nodes, *self.closed.values()]
        self.everything = Shape(graph, nodes, [], self.full.lines, self.full.inner, self.full.outside)
        self._unreached = unreached(graph.trace)
        self._arms = arms_of(graph.trace)
        self._plain = {node: self._look(node) for node in nodes}
        self._rows: dict[tuple[Any, ...], dict[Shown, list[Row]]] = {}
        self._wires: dict[tuple[Any, ...], list[Wire]] = {}

    # -- nodes -----------------------------------------------------------------------------------

    def nodes(self, settings: Settings, overlay: Overlay) -> list[SceneNode]:
        """The nodes of ``everything`` under the settings of a view, as the static picture has them."""
        if settings["node_spec_fn"] is not None:
            return assemble(self.everything, settings, overlay).nodes
        return [self._node(node, settings, overlay) for node in self.everything.nodes]

    def _node(self, node: Shown, settings: Settings, overlay: Overlay) -> SceneNode:
        mark, styling = overlay.marks.get(node, _NONE), overlay.styling.get(node, _NONE)
        look = {**self._plain[node], **mark.look, **overlay.channel.get(node, {}), **styling.look}
        rows = [*self._base(node, settings), *self._extra(node, settings), *mark.rows, *styling.rows]
        return SceneNode(id="", rows=tuple(rows), **look)

    def _look(self, node: Shown) -> dict[str, Any]:
        look = role_look(role_of(node), THEMES[BASE], dashed=is_unreached(node, self._unreached))
        return {**look, "shape": "box" if node.kind != "unit" else "rounded"}

    def _base(self, node: Shown, settings: Settings) -> list[Row]:
        known = self._rows.setdefault((settings["show_shapes"], settings["show_redundant_args"]), {})
        if node not in known:
            known[node] = [*node_rows(node, settings), *outcome_rows(node)]
        return known[node]

    def _extra(self, node: Shown, settings: Settings) -> list[Row]:
        if node.kind != "unit":
            return []
        rows: list[Row] = []
        for name, wanted, make in (
            ("cost", settings["node_style"] == "profiling", cost_rows),
            ("saved", settings["show_saved_for_backward"], saved_rows),
        ):
            if wanted:
                known = self._rows.setdefault((name,), {})
                if node not in known:
                    known[node] = make(node.unit)
                rows += known[node]
        return rows

    # -- lines -----------------------------------------------------------------------------------

    def wires(self, settings: Settings, heads: Mapping[tuple[int, str], str]) -> list[Wire]:
        """The lines between units; always the same ones, with the texts of a view."""
        key = settings["show_edge_shapes"], tuple(heads.items())
        if key not in self._wires:
            names = Names(heads, self._arms)
            self._wires[key] = [
                Wire(
                    line.source.unit,
                    line.target.unit,
                    text.head,
                    text.label,
                    text.tensors,
                    self._is_loose(line.source),
                )
                for line in self.full.lines
                for text in line_texts(line, settings, names)
            ]
        return self._wires[key]

    def _is_loose(self, source: Shown) -> bool:
        return is_unreached(source, self._unreached)


_NONE = Mark()


def _closed(group: Group) -> Shown:
    around = group.scopes[0].parent or group.scopes[0]
    return Shown("run" if group.kind == "run" else "call", group.units, around, group.scopes)
