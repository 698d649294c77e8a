"""The tree that the page opens and closes: module calls, runs of equal neighbours, passes, stretches.

Every group is one node while it is closed.  No group holds more than :data:`MOST` items, so that any of
them is drawn at once: what would be longer is cut into stretches of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from torchlens.drawing.fold import fold_repeats
from torchlens.drawing.graph import Graph, Scope, Unit

MOST = 48
"""Items of a group."""
STRETCH = 24
"""Items of a stretch that a longer row is cut into, about."""
PASSES_FROM = 10
"""A scope with fewer items is not divided by passes."""
ENDS_FROM = 5
"""Fewer inputs or outputs in a row stand each for itself."""

Kind = Literal["root", "call", "run", "pass", "passes", "steps", "inputs", "outputs"]


@dataclass(slots=True, eq=False)
class Group:
    """One node while closed, one box while open.

    ``scopes`` are the module calls it stands for; ``number`` counts passes and stretches.
    """

    kind: Kind
    items: list[Group | Unit] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    number: int = 0
    parent: Group | None = None
    depth: int = 0
    units: list[Unit] = field(default_factory=list)
    open: bool = False

    @property
    def first(self) -> int:
        """Position of its first unit in the order of execution."""
        return self.units[0].number if self.units else 0

    def __repr__(self) -> str:
        return f"Group({self.kind!r}, {len(self.items)} items, {len(self.units)} units)"


Item = Group | Unit


def tree_of(graph: Graph, *, by_pass: bool) -> Group:
    """Make the tree of a graph.

    Parameters
    ----------
    graph : Graph
    by_pass : bool
        Put the items of one pass of a loop into a group of their own.
    """
    rest = {run.rest[0]: run.rest for run in fold_repeats(graph)}
    folded = {scope for scopes in rest.values() for scope in scopes}
    root = Group("root", scopes=[graph.root])
    stack = [root]
    while stack:
        group = stack.pop()
        for item in group.scopes[0].items:
            if isinstance(item, Unit):
                group.items.append(item)
            elif item in rest:
                members = [Group("call", scopes=[scope]) for scope in rest[item]]
                group.items.append(Group("run", list(members), rest[item]))
                stack += members
            elif item not in folded:
                child = Group("call", scopes=[item])
                group.items.append(child)
                stack.append(child)
    root.items = _ends(_ends(root.items, "input"), "output")
    for group in list(groups(root)):
        if by_pass and group.kind in ("root", "call"):
            group.items = _by_pass(group.items)
    _settle(root)
    for group in list(groups(root)):
        group.items = _stretches(group.items)
    _settle(root)
    return root


def groups(top: Group) -> Iterator[Group]:
    """A group and those inside it, outer ones first, in the order of execution."""
    stack = [top]
    while stack:
        group = stack.pop()
        yield group
        stack += [item for item in reversed(group.items) if isinstance(item, Group)]


MADE = ("pass", "passes", "steps", "inputs", "outputs")
"""Kinds of groups that no module call stands behind."""


def _settle(root: Group) -> None:
    """Set parents, depths and the units inside."""
    every = list(groups(root))
    for group in every:
        for item in group.items:
            if isinstance(item, Group):
                item.parent, item.depth = group, group.depth + 1
    for group in reversed(every):
        units = [unit for item in group.items for unit in (item.units if isinstance(item, Group) else [item])]
        group.units = sorted(units, key=lambda unit: unit.number)


# -- inputs and outputs -------------------------------------------------------------------------


def _ends(items: list[Item], kind: Literal["input", "output"]) -> list[Item]:
    """Leave the first of many inputs or outputs, and make the others one group where they begin."""
    ends = [item for item in items if isinstance(item, Unit) and item.op.kind == kind]
    if len(ends) < ENDS_FROM:
        return items
    rest = Group("inputs" if kind == "input" else "outputs", list(ends[1:]))
    hidden = set(ends[2:])
    kept = [item for item in items if item not in hidden]
    return [rest if item is ends[1] else item for item in kept]


# -- passes ------------------------------------------------------------------------------------


def _by_pass(items: list[Item]) -> list[Item]:
    """Gather neighbours of one pass, and then equal neighbours of those."""
    if len(items) < PASSES_FROM:
        return items
    found: list[Item] = []
    current: Group | None = None
    for item in items:
        number = pass_of(item)
        if number is None:
            found.append(item)
            if _computes(item):
                current = None
            continue
        if current is None or current.number != number:
            current = Group("pass", number=number)
            found.append(current)
        current.items.append(item)
    if sum(isinstance(item, Group) and item.kind == "pass" for item in found) < 2:
        return items
    return _folded(found)


def pass_of(item: Item) -> int | None:
    """Number of the pass that an item belongs to, if its layer or module has several."""
    if isinstance(item, Unit):
        return item.op.pass_index if item.op.num_passes > 1 and item.op.kind == "call" else None
    call = item.scopes[0].calls[0]
    return call.pass_index if call.module.num_passes > 1 and item.kind == "call" else None


def _computes(item: Item) -> bool:
    return not isinstance(item, Unit) or item.op.kind == "call"


def _folded(items: list[Item]) -> list[Item]:
    """Leave the first of equal passes, and make the others one run."""
    found: list[Item] = []
    start = 0
    for end in range(1, len(items) + 1):
        first = items[start]
        is_pass = isinstance(first, Group) and first.kind == "pass"
        if is_pass and end < len(items) and _signature(items[end]) == _signature(first):
            continue
        found.append(first)
        if end - start > 1:
            found.append(Group("passes", items[start + 1 : end], number=first_pass(items[start + 1])))
        start = end
    return found


def first_pass(item: Item) -> int:
    """Number of a pass, or of the first of several."""
    return item.number if isinstance(item, Group) else 0


def _signature(item: Item) -> object:
    if isinstance(item, Unit):
        return item.op.type, item.op.shapes
    name = item.scopes[0].calls[0].module.class_name if item.scopes else item.kind
    return name, tuple(map(_signature, item.items))


# -- stretches ---------------------------------------------------------------------------------


def _stretches(items: list[Item]) -> list[Item]:
    """Cut a long row into stretches of about equal length, and long rows of those again."""
    while len(items) > MOST:
        count = max(2, math.ceil(len(items) / STRETCH))
        bounds = [round(len(items) * k / count) for k in range(count + 1)]
        items = [
            Group("steps", items[low:high], number=k + 1) for k, (low, high) in enumerate(pairwise(bounds))
        ]
    return items


# -- what stands open --------------------------------------------------------------------------


def open_default(root: Group, *, budget: int, inside: Sequence[Group] = ()) -> None:
    """Open groups level by level while at most ``budget`` nodes are visible.

    Where a whole level does not fit, the first group of each class is opened if that does.
    """
    root.open = True
    level = list(inside) or [root]
    for group in level:
        group.open = True
    visible = sum(len(group.items) for group in level)
    while level:
        level = [item for group in level if group.open for item in group.items if isinstance(item, Group)]
        ready = [group for group in level if group.kind in ("call", "pass")]
        visible = _open_within(ready, visible, budget)


def _open_within(level: list[Group], visible: int, budget: int) -> int:
    whole = visible + sum(len(group.items) - 1 for group in level)
    chosen = level if whole <= budget else list({_class(group): group for group in reversed(level)}.values())
    for group in sorted(chosen, key=lambda group: group.first):
        if visible + len(group.items) - 1 <= budget:
            group.open = True
            visible += len(group.items) - 1
    return visible


def _class(group: Group) -> str:
    return group.scopes[0].calls[0].module.class_name if group.scopes else group.kind


def open_where(root: Group, wanted: Callable[[Group], bool]) -> None:
    """Open exactly the groups that ``wanted`` names, and what stands around nothing else."""
    for group in groups(root):
        group.open = group is root or wanted(group)
