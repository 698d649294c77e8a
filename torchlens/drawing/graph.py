"""The graph that is drawn: units, the links between them, and the module calls around them.

A unit is what one node can stand for: an op, or a layer with all of its passes in a rolled drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlens.trace.op import Layer, Op
    from torchlens.trace.parts import Call, Edge, Param
    from torchlens.trace.trace import Trace


@dataclass(slots=True, eq=False)
class Scope:
    """A module call, or in a rolled graph the calls that are passes of one another.

    ``wrappers`` are calls around it that hold nothing else; ``size`` counts the units inside.
    """

    calls: list[Call]
    parent: Scope | None
    depth: int = 0
    wrappers: list[Call] = field(default_factory=list)
    items: list[Scope | Unit] = field(default_factory=list)
    first: int = 0
    size: int = 0

    def __repr__(self) -> str:
        return f"Scope({self.calls[0].label if self.calls else 'root'!r}, {self.size} units)"


@dataclass(slots=True, eq=False)
class Unit:
    """An op, or a layer with all of its passes.

    ``leaf`` are the calls of the module that does nothing but this; the unit carries its name.
    """

    number: int
    part: Op | Layer
    ops: Sequence[Op]
    scope: Scope
    leaf: list[Call] = field(default_factory=list)
    _params: list[Param] | None = None

    @property
    def params(self) -> list[Param]:
        """The parameters that it reads, each once."""
        if self._params is None:
            self._params = list(dict.fromkeys(param for op in self.ops for param in op.params))
        return self._params

    @property
    def op(self) -> Op:
        """The first pass."""
        return self.ops[0]

    @property
    def first(self) -> int:
        """Position in the order of execution."""
        return self.number

    def __repr__(self) -> str:
        return f"Unit({self.part.label!r})"


@dataclass(slots=True)
class Link:
    """One argument of one unit: the tensor ``edges[0].out_index`` of ``source``, once per pass."""

    source: Unit
    target: Unit
    edges: list[Edge]


@dataclass(slots=True)
class Graph:
    """Units in the order of execution, links, and the tree of scopes under ``root``."""

    trace: Trace
    rolled: bool
    root: Scope
    units: list[Unit]
    links: list[Link]

    def scopes(self) -> Iterator[Scope]:
        """Every scope but the root, outer ones before those inside, in the order of execution."""
        return (scope for scope in walk(self.root) if scope is not self.root)


def walk(top: Scope) -> Iterator[Scope]:
    """A scope and those inside it, outer ones first, without recursion."""
    stack = [top]
    while stack:
        scope = stack.pop()
        yield scope
        stack += [item for item in reversed(scope.items) if isinstance(item, Scope)]


def units_in(top: Scope) -> list[Unit]:
    """Every unit inside a scope, in order."""
    found = [item for scope in walk(top) for item in scope.items if isinstance(item, Unit)]
    return sorted(found, key=lambda unit: unit.number)


def chain(scope: Scope | None) -> list[Scope]:
    """A scope and those around it, innermost first."""
    found = []
    while scope is not None:
        found.append(scope)
        scope = scope.parent
    return found


def build(trace: Trace, *, rolled: bool = False, keep: Callable[[Op], bool] = lambda op: True) -> Graph:
    """Make the graph of a trace.

    Parameters
    ----------
    trace : Trace
    rolled : bool
        One unit per layer instead of per op.
    keep : callable
        Which ops take part.

    Returns
    -------
    Graph
    """
    root = Scope([], None)
    parts = _parts(trace, rolled, keep)
    scopes = _Scopes(trace, root, parts)
    units = [Unit(number, part, ops, root) for number, (part, ops) in enumerate(parts)]
    of_op = {op.step: unit for unit in units for op in unit.ops}
    for unit in units:
        unit.scope = scopes.of(unit.ops)
    for unit in units:
        if unit.op.kind in ("buffer", "constant"):
            unit.scope = _common(of_op[op.step].scope for op in unit.op.children if op.step in of_op) or root
    _fill(root, units)
    _dissolve(root)
    return Graph(trace, rolled, root, units, _links(units, of_op))


def _parts(trace: Trace, rolled: bool, keep: Callable[[Op], bool]) -> list[tuple[Op | Layer, Sequence[Op]]]:
    if not rolled:
        return [(op, (op,)) for op in trace.ops if keep(op)]
    found = [(layer, [op for op in layer.ops if keep(op)]) for layer in trace.layers]
    return sorted([(layer, ops) for layer, ops in found if ops], key=lambda item: item[1][0].step)


class _Scopes:
    """The scope of each call; calls that are passes of one another share one."""

    def __init__(self, trace: Trace, root: Scope, parts: list[tuple[Op | Layer, Sequence[Op]]]) -> None:
        self._root = root
        self._same: dict[int, int] = {}
        self._scopes: dict[int, Scope] = {}
        for _, ops in parts:
            if len(ops) > 1:
                self._join(ops)
        for index in sorted(self._same):
            self._of_call(trace.calls[self._find(index)]).calls.append(trace.calls[index])

    def of(self, ops: Sequence[Op]) -> Scope:
        """The scope that an op or layer stands in."""
        call = ops[0].call
        return self._root if call is None else self._of_call(call)

    def _of_call(self, call: Call) -> Scope:
        way: list[Call] = []
        current: Call | None = call
        while current is not None and self._find(current.index) not in self._scopes:
            way.append(current)
            current = current.parent
        scope = self._root if current is None else self._scopes[self._find(current.index)]
        for inner in reversed(way):
            is_model = inner.parent is None and not inner.module.address
            if is_model:
                scope.calls.append(inner)
            else:
                scope = Scope([inner], scope)
            self._scopes[self._find(inner.index)] = scope
        return scope

    def _find(self, index: int) -> int:
        way = []
        while index in self._same:
            way.append(index)
            index = self._same[index]
        for step in way:
            self._same[step] = index
        return index

    def _join(self, ops: Sequence[Op]) -> None:
        """Make the calls around the passes of a layer one, where they are calls of the same modules."""
        first = _calls(ops[0].call)
        seen = {ops[0].call.index} if ops[0].call is not None else set()
        for op in ops[1:]:
            if op.call is None or op.call.index in seen:
                continue
            seen.add(op.call.index)
            other = _calls(op.call)
            if [call.module for call in first] == [call.module for call in other]:
                for a, b in zip(first, other):
                    low, high = sorted((self._find(a.index), self._find(b.index)))
                    if low != high:
                        self._same[high] = low


def _calls(call: Call | None) -> list[Call]:
    found = []
    while call is not None:
        found.append(call)
        call = call.parent
    return found


def _common(scopes: Iterable[Scope]) -> Scope | None:
    """The innermost scope around all of ``scopes``."""
    shared: list[Scope] | None = None
    for scope in scopes:
        way = chain(scope)
        if shared is None:
            shared = way
        else:
            inside = {id(s) for s in way}
            shared = [s for s in shared if id(s) in inside]
    return shared[0] if shared else None


def _fill(root: Scope, units: list[Unit]) -> None:
    """Hang units and scopes into the scopes around them, in the order of execution."""
    hung = {id(root)}
    for unit in units:
        item: Scope | Unit = unit
        for scope in chain(unit.scope):
            scope.size += 1
            if item is unit or id(item) not in hung:
                hung.add(id(item))
                scope.items.append(item)
                if isinstance(item, Scope):
                    item.first = unit.number
            item = scope


def _dissolve(root: Scope) -> None:
    """Take away the scopes of leaf modules, which name their only op, and those that only wrap another."""
    for scope in reversed(list(walk(root))):
        items: list[Scope | Unit] = []
        for item in scope.items:
            items += _without_leaf(item) if isinstance(item, Scope) else [item]
        scope.items = items
    for scope in walk(root):
        scope.depth = 0 if scope.parent is None else scope.parent.depth + 1
        for position, item in enumerate(scope.items):
            while isinstance(item, Scope) and len(item.items) == 1 and isinstance(item.items[0], Scope):
                inner = item.items[0]
                inner.wrappers = [*item.wrappers, *item.calls, *inner.wrappers]
                inner.parent, scope.items[position] = scope, inner
                item = inner


def _without_leaf(scope: Scope) -> list[Scope | Unit]:
    """A scope, or its units where only one of them computes."""
    calls = [item for item in scope.items if not _is_source(item)]
    if len(calls) != 1 or isinstance(calls[0], Scope):
        return [scope]
    only = calls[0]
    only.leaf = only.leaf or scope.calls
    for item in scope.items:
        assert isinstance(item, Unit)
        assert scope.parent is not None
        item.scope = scope.parent
    return list(scope.items)


def _is_source(item: Scope | Unit) -> bool:
    return isinstance(item, Unit) and item.op.kind in ("buffer", "constant")


def _links(units: list[Unit], of_op: dict[int, Unit]) -> list[Link]:
    links: list[Link] = []
    for unit in units:
        found: dict[tuple[int, str, int], Link] = {}
        for op in unit.ops:
            for edge in op.inputs:
                source = of_op.get(edge.parent.step)
                if source is None:
                    continue
                link = Link(source, unit, [edge])
                if len(unit.ops) > 1:
                    link = found.setdefault((source.number, repr(edge.path), edge.out_index), link)
                    if link.edges[0] is not edge:
                        link.edges.append(edge)
                        continue
                links.append(link)
    return links
