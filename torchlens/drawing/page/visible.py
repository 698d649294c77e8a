"""What is visible of a tree: its open groups, the lines between visible items, and their scene."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torchlens.drawing.graph import Unit
from torchlens.drawing.page.tree import Group, Item
from torchlens.drawing.scene import ROOT, Direction, Scene, SceneBox, SceneEdge, SceneNode


@dataclass(slots=True)
class Visible:
    """Nodes in order with the box around each, boxes outside in, and the item that stands for a unit.

    ``stubs`` are neighbours outside of the focus.
    """

    nodes: list[tuple[Item, Group | None]] = field(default_factory=list)
    boxes: list[tuple[Group, Group | None]] = field(default_factory=list)
    item_of: dict[Unit, Item] = field(default_factory=dict)
    stubs: set[Item] = field(default_factory=set)


def visible(root: Group, focus: Collection[Item] = ()) -> Visible:
    """See what the open groups of a tree show; ``focus`` limits it to some items and their neighbours."""
    found = Visible()
    around_focus = {id(above) for item in focus for above in _above(item, root)}
    stack: list[tuple[Group, Group | None, bool]] = [(root, None, not focus)]
    while stack:
        group, around, inside = stack.pop()
        deeper: list[tuple[Group, Group | None, bool]] = []
        for item in group.items:
            inside_now = inside or item in focus
            if isinstance(item, Group) and inside_now and (item.open or item in focus):
                found.boxes.append((item, around))
                deeper.append((item, item, True))
            elif isinstance(item, Group) and id(item) in around_focus:
                deeper.append((item, None, False))
            else:
                found.nodes.append((item, around))
                found.item_of.update(dict.fromkeys(item.units if isinstance(item, Group) else [item], item))
                if not inside_now:
                    found.stubs.add(item)
        stack += reversed(deeper)
    return found


def _above(item: Item, root: Group) -> list[Group]:
    way: list[Group] = []
    parent = item.parent if isinstance(item, Group) else _holder(item, root)
    while parent is not None:
        way.append(parent)
        parent = parent.parent
    return way


def _holder(unit: Unit, root: Group) -> Group:
    group = root
    while unit not in group.items:
        group = next(item for item in group.items if isinstance(item, Group) and unit in item.units)
    return group


@dataclass(frozen=True, slots=True)
class Wire:
    """A line between two units, as the picture with every op has it."""

    source: Unit
    target: Unit
    head: str
    label: str
    count: int
    dashed: bool


def scene_of(
    seen: Visible,
    wires: Sequence[Wire],
    looks: Mapping[Item, SceneNode],
    titles: Mapping[Group, SceneBox],
    *,
    direction: Direction,
    font_size: float | None,
) -> Scene:
    """The scene of what is visible, from the nodes and boxes that each item has."""
    edges = _edges(seen, wires, looks)
    joined = {name for edge in edges for name in (edge.source, edge.target)}
    nodes = [
        replace(looks[item], scope=_name(around, titles))
        for item, around in seen.nodes
        if item not in seen.stubs or looks[item].id in joined
    ]
    boxes = [replace(titles[group], scope=_name(around, titles)) for group, around in seen.boxes]
    return Scene(
        title="",
        nodes=nodes,
        boxes=boxes,
        edges=edges,
        direction=direction,
        long_edges="line",
        wrap=direction != "leftright",
        font_size=font_size,
    )


def _name(group: Group | None, titles: Mapping[Group, SceneBox]) -> str:
    return ROOT if group is None else titles[group].id


def _edges(seen: Visible, wires: Sequence[Wire], looks: Mapping[Item, SceneNode]) -> list[SceneEdge]:
    gathered: dict[tuple[Item, Item], list[Wire]] = {}
    for wire in wires:
        source, target = seen.item_of[wire.source], seen.item_of[wire.target]
        if source is target and (isinstance(source, Group) or wire.source is not wire.target):
            continue
        if source in seen.stubs and target in seen.stubs:
            continue
        gathered.setdefault((source, target), []).append(wire)
    return [
        SceneEdge(
            source=looks[source].id,
            target=looks[target].id,
            head=_joined([wire.head for wire in lines]) if isinstance(target, Unit) else "",
            label=_joined([wire.label for wire in lines]),
            back=source.first >= target.first,
            dashed=source in seen.stubs or target in seen.stubs or all(wire.dashed for wire in lines),
            count=len({wire.source for wire in lines}) if len(lines) > 1 else lines[0].count,
        )
        for (source, target), lines in gathered.items()
    ]


def _joined(texts: list[str]) -> str:
    found = list(dict.fromkeys(text for text in texts if text))
    return ", ".join(found[:3]) + (f" +{len(found) - 3}" if len(found) > 3 else "")
