"""One view of the page: looks and rows of every item, captions, legend, and the first layout."""

from __future__ import annotations

from dataclasses import dataclass

from torchlens.drawing import captions
from torchlens.drawing.channels import Reading
from torchlens.drawing.fold import Shown
from torchlens.drawing.graph import Graph, Unit
from torchlens.drawing.legend import legend_of
from torchlens.drawing.marks import nonfinite_mark, role_look, weights_role
from torchlens.drawing.overlay import Layers, layers_of
from torchlens.drawing.page.looks import BASE
from torchlens.drawing.page.parts import Parts
from torchlens.drawing.page.tree import MADE, Group, Item, groups
from torchlens.drawing.page.visible import Wire
from torchlens.drawing.plan import Plan, focus_of, plan
from torchlens.drawing.rows import calls_name, class_of, inside_text
from torchlens.drawing.scene import Legend, Row, SceneBox, SceneNode
from torchlens.drawing.settings import Settings
from torchlens.drawing.themes import THEMES
from torchlens.drawing.view_captions import closing_lines, view_lines

TOP = 40
"""Values in the sorted list."""
IN_BOXES = "What ran in one pass stands in a box with the number of that pass."
ROOM = "\u2003\u2002"
"""Room in a title for the sign that closes the box."""


@dataclass(slots=True)
class Picture:
    """Everything that a view says of the items of a tree.

    ``top`` lists the largest values with their share of the total, in percent.
    """

    graph: Graph
    root: Group
    nodes: dict[Item, SceneNode]
    boxes: dict[Group, SceneBox]
    wires: list[Wire]
    caption: tuple[str, ...]
    legend: Legend | None
    focus: list[Item]
    top: list[tuple[Unit, str, float]]
    top_title: str


def picture_of(parts: Parts, settings: Settings) -> Picture:
    """See every op and every closed group of a tree under the settings of a view."""
    settings = settings.replaced("theme", BASE)
    if not settings.explicit("show_legend"):
        settings = settings.replaced("show_legend", True)
    passes = any(group.kind == "pass" for group in groups(parts.root))
    if passes and not settings.explicit("stack_by"):
        settings = settings.replaced("stack_by", None, note=IN_BOXES if settings["stack_by"] else "")
    layers = layers_of(parts.everything, settings)
    made = parts.nodes(settings, layers.overlay)
    closing = _Closing(settings, layers.color)
    units = [node.unit for node in parts.full.nodes]
    nodes: dict[Item, SceneNode] = dict(zip(units, made))
    for group, node in zip(parts.closed, made[len(units) :]):
        node.rows = (*node.rows, *closing.sums(group))
        nodes[group] = node
    nodes |= {group: closing.made(group) for group in groups(parts.root) if group.kind in MADE}
    for number, node in enumerate(nodes.values()):
        node.id = str(number)
    return Picture(
        parts.graph,
        parts.root,
        nodes,
        {group: closing.box(group, nodes[group]) for group in groups(parts.root) if group.parent},
        parts.wires(settings, layers.overlay.edge_heads),
        _captions(parts, layers, settings),
        legend_of(parts.everything, layers, settings),
        _focus(parts.graph, parts.root, settings),
        _top(layers.color),
        layers.color.channel.title if layers.color is not None else "",
    )


def percent(share: float) -> str:
    """A share in whole percent; what is too small for that is not said to be nothing."""
    return "<1%" if 0 < share < 0.005 else f"{100 * share:.0f}%"


def made_title(group: Group) -> str:
    """What a pass, several passes, or a stretch of steps is called."""
    if group.kind == "pass":
        return f"pass {group.number}"
    if group.kind in ("inputs", "outputs"):
        return f"+{len(group.units)} more {group.kind}"
    if group.kind == "passes":
        count = len({unit.op.pass_index for unit in group.units if unit.op.num_passes > 1})
        return f"+{count} more passes ({group.number}–{group.number + count - 1})"
    calls = [item for item in group.items if isinstance(item, Group) and item.scopes]
    if calls and len(calls) == len(group.items):
        first, last = calls[0].scopes[0], calls[-1].scopes[-1]
        return f"{calls_name(first.calls)}–{calls_name(last.calls)} · {class_of(first)}"
    return f"steps {group.units[0].number}–{group.units[-1].number}"


class _Closing:
    """How groups look closed and open."""

    def __init__(self, settings: Settings, color: Reading | None) -> None:
        self.settings = settings
        self.color = color
        self.theme = THEMES[BASE]

    def made(self, group: Group) -> SceneNode:
        """A pass or a stretch of steps, which no module stands behind."""
        first, last = group.units[0], group.units[-1]
        rows = [Row(made_title(group), "title")]
        is_end = group.kind in ("inputs", "outputs")
        if group.kind == "steps":
            rows.append(Row(f"{first.part.label} … {last.part.label}", "shape"))
        elif is_end:
            rows.append(Row(f"{first.op.address} … {last.op.address}", "detail"))
        role = group.kind[:-1] if is_end else weights_role(group.units)
        look = role_look(role, self.theme, dashed=False)
        if self.color is not None and not is_end:
            look["fill"] = self.theme.roles["aggregate"].fill
        if self.settings["view"] == "debug":
            mark = nonfinite_mark(Shown("run", group.units, first.scope))
            look |= mark.look
            rows += mark.rows
        rows += [] if is_end else [Row(inside_text(group.units)), *self.sums(group)]
        return SceneNode(id="", rows=tuple(rows), shape="box", **look)

    def sums(self, group: Group) -> list[Row]:
        """The sum of the values inside."""
        if self.color is None or not self.color.channel.total:
            return []
        values = [self.color.values[unit] for unit in group.units if unit in self.color.values]
        total = sum(self.color.values.values())
        if not values or not total:
            return []
        share = f"{percent(sum(values) / total)} of {self.color.channel.title}"
        return [Row(f"{self.color.channel.show(sum(values))} · {share}", "note")]

    def box(self, group: Group, node: SceneNode) -> SceneBox:
        """An open group: a frame with the title that it has closed."""
        return SceneBox(
            id=node.id,
            title=(Row(ROOM + node.rows[0].text, "title"),),
            fill=self.theme.box_fill(group.depth - 1),
            ink=self.theme.box_ink,
            stroke=self.theme.box_stroke,
            stroke_width=self.theme.box_width,
        )


def _captions(parts: Parts, layers: Layers, settings: Settings) -> tuple[str, ...]:
    """What the static picture says, but for what depends on what is open."""
    everything, whole = Plan(parts.everything, []), Plan(parts.full, [])
    if settings["module"] is not None:
        whole = plan(parts.graph, settings.replaced("collapse", "none").replaced("depth", None))
    lines = [
        *view_lines(everything, layers, settings),
        *captions.channel_lines(layers, everything, settings),
        *closing_lines(everything, layers, settings),
        *captions.general_lines(whole, settings, 0),
    ]
    listed = captions.top_lines(layers.color) if layers.color is not None else []
    return tuple(line for line in lines if line and line not in listed)


def _focus(graph: Graph, root: Group, settings: Settings) -> list[Item]:
    if settings["module"] is None:
        return []
    group_of = {scope: group for group in groups(root) if group.kind == "call" for scope in group.scopes}
    return [
        item if isinstance(item, Unit) else group_of[item]
        for item in focus_of(graph, settings["module"])
        if isinstance(item, Unit) or item in group_of
    ]


def _top(color: Reading | None) -> list[tuple[Unit, str, float]]:
    if color is None or not color.channel.total or color.all_equal:
        return []
    total = sum(color.values.values())
    if not total:
        return []
    best = sorted(color.values.items(), key=lambda item: (-item[1], item[0].number))[:TOP]
    return [
        (unit, color.channel.show(value), round(100 * value / total, 1)) for unit, value in best if value > 0
    ]
