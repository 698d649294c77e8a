"""What is drawn open, what closed: collapsing, folding of repeats, and focus on one module.

Each pass is a function of the graph that states its options; :func:`show` applies their outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from torchlens.drawing.graph import Graph, Link, Scope, Unit, chain, units_in, walk


@dataclass(slots=True, eq=False)
class Run:
    """Equal neighbours: ``first`` is drawn, ``rest`` becomes one node."""

    first: Scope
    rest: list[Scope]


@dataclass(slots=True, eq=False)
class Shown:
    """One visible node and the units it stands for.

    ``kind`` is ``"unit"``, ``"call"`` for a closed module call, or ``"run"`` for the rest of equal
    neighbours.  ``stub`` marks a neighbour outside of the drawn part.
    """

    kind: Literal["unit", "call", "run"]
    units: list[Unit]
    around: Scope
    scopes: list[Scope] = field(default_factory=list)
    stub: bool = False

    @property
    def unit(self) -> Unit:
        """The first unit, the only one of a node that stands for one."""
        return self.units[0]

    @property
    def order(self) -> int:
        """Position in the order of execution."""
        return self.units[0].number


@dataclass(slots=True, eq=False)
class Line:
    """All links between two visible nodes; ``back`` against the order of execution.

    ``ordered`` tells that the target reads other tensors than those of this line as well.
    """

    source: Shown
    target: Shown
    links: list[Link]
    back: bool
    ordered: bool = False

    @property
    def tensors(self) -> int:
        """Number of different tensors."""
        return len({(link.source.number, link.edges[0].out_index) for link in self.links})


@dataclass(slots=True, eq=False)
class Shape:
    """The visible graph: nodes and boxes in order, lines, and what lies outside of it.

    ``inner`` links lie inside a closed node; ``outside`` are units that no node stands for.
    """

    graph: Graph
    nodes: list[Shown]
    boxes: list[Scope]
    lines: list[Line]
    inner: list[Link]
    outside: list[Unit]


def close_deeper(graph: Graph, *, depth: int) -> set[Scope]:
    """Close every call nested deeper than ``depth``."""
    return {scope for scope in graph.scopes() if scope.depth > depth}


def fold_repeats(graph: Graph, *, min_run: int = 2) -> list[Run]:
    """Find runs of at least ``min_run`` equal neighbours in every scope."""
    shapes = signatures(graph)
    runs = []
    for scope in walk(graph.root):
        items, start = scope.items, 0
        for end in range(1, len(items) + 1):
            first = items[start]
            if end < len(items) and isinstance(first, Scope) and shapes.get(items[end]) == shapes[first]:
                continue
            if isinstance(first, Scope) and end - start >= min_run:
                runs.append(Run(first, [item for item in items[start + 1 : end] if isinstance(item, Scope)]))
            start = end
    return runs


def signatures(graph: Graph) -> dict[Scope | Unit, int]:
    """Number the scopes so that equal ones (class, ops, shapes, inner wiring) have one number."""
    wiring = _wiring(graph)
    numbers: dict[object, int] = {}
    found: dict[Scope | Unit, int] = {}
    for scope in reversed(list(walk(graph.root))):
        parts: list[object] = [tuple(call.module.class_name for call in scope.calls[:1])]
        for position, item in enumerate(scope.items):
            inner: object = found[item] if isinstance(item, Scope) else _signature(item)
            parts.append((inner, tuple(sorted(wiring.get((scope, position), ())))))
        found[scope] = numbers.setdefault(tuple(parts), len(numbers))
    return found


def _signature(unit: Unit) -> tuple[object, ...]:
    op = unit.op
    return op.type, op.shapes, len(unit.ops), tuple(param.shape for param in unit.params)


def _wiring(graph: Graph) -> dict[tuple[Scope, int], list[tuple[int, int, str]]]:
    """For each item of a scope, by position: which outputs of siblings feed it, at which argument."""
    position = {item: i for scope in walk(graph.root) for i, item in enumerate(scope.items)}
    wiring: dict[tuple[Scope, int], list[tuple[int, int, str]]] = {}
    for link in graph.links:
        ways = _meeting(link)
        if ways is not None:
            scope, source, target = ways
            edge = link.edges[0]
            wire = position[source], edge.out_index, str(edge.path)
            wiring.setdefault((scope, position[target]), []).append(wire)
    return wiring


def _meeting(link: Link) -> tuple[Scope, Scope | Unit, Scope | Unit] | None:
    """The innermost scope around both ends of a link, and its items that hold them."""
    if link.source.scope is link.target.scope:
        return link.source.scope, link.source, link.target
    above: dict[Scope, Scope | Unit] = {}
    item: Scope | Unit = link.source
    for scope in chain(link.source.scope):
        above[scope] = item
        item = scope
    item = link.target
    for scope in chain(link.target.scope):
        if scope in above:
            return scope, above[scope], item
        item = scope
    return None


def show(
    graph: Graph,
    *,
    closed: Collection[Scope] = (),
    runs: Sequence[Run] = (),
    focus: Collection[Scope | Unit] = (),
) -> Shape:
    """Apply closing, folding and focus to a graph.

    Parameters
    ----------
    graph : Graph
    closed : collection of Scope
        Scopes that become one node each.
    runs : sequence of Run
        Runs of which only the first is drawn.
    focus : collection of Scope or Unit
        If given, only these are drawn, with their neighbours as stubs.

    Returns
    -------
    Shape
    """
    walker = _Walker(graph, set(closed), runs, set(focus))
    walker.walk()
    node_of = {unit: node for node in walker.nodes for unit in node.units}
    lines, inner = _lines(graph, node_of)
    nodes = walker.nodes
    if focus:
        lines = [line for line in lines if not (line.source.stub and line.target.stub)]
        joined = {node for line in lines for node in (line.source, line.target)}
        nodes = [node for node in nodes if not node.stub or node in joined]
        inner = [link for link in inner if not node_of[link.source].stub]
    drawn = {unit for node in nodes for unit in node.units}
    nodes = sorted(nodes, key=lambda node: node.order)
    return Shape(
        graph, nodes, walker.boxes, lines, inner, [unit for unit in graph.units if unit not in drawn]
    )


class _Walker:
    """Walks the scopes from the outside in and makes the visible nodes."""

    def __init__(
        self, graph: Graph, closed: set[Scope], runs: Sequence[Run], focus: set[Scope | Unit]
    ) -> None:
        self.graph = graph
        self.closed = closed
        self.rest_of = {scope: run for run in runs for scope in run.rest}
        self.focus = focus
        self.around_focus = {scope for item in focus for scope in chain(_parent(item))}
        self.nodes: list[Shown] = []
        self.boxes: list[Scope] = []

    def walk(self) -> None:
        """Visit every scope that is open, outer ones first."""
        stack: list[tuple[Scope, bool]] = [(self.graph.root, not self.focus)]
        while stack:
            scope, inside = stack.pop()
            if inside and scope is not self.graph.root:
                self.boxes.append(scope)
            opened = [found for item in scope.items if (found := self._item(item, scope, inside))]
            stack += reversed(opened)

    def _item(self, item: Scope | Unit, scope: Scope, inside: bool) -> tuple[Scope, bool] | None:
        """Make the node of an item, or return it if it is to be opened."""
        inside_now = inside or item in self.focus
        around = scope if inside else self.graph.root
        stub = not inside_now
        if isinstance(item, Unit):
            self.nodes.append(Shown("unit", [item], around, stub=stub))
            return None
        run = self.rest_of.get(item)
        if run is not None and inside:
            if item is run.rest[0]:
                units = [unit for member in run.rest for unit in units_in(member)]
                self.nodes.append(Shown("run", units, around, list(run.rest)))
            return None
        if item in self.around_focus and not inside_now:
            return item, False
        if stub or (item in self.closed and item not in self.focus):
            self.nodes.append(Shown("call", units_in(item), around, [item], stub))
            return None
        return item, True


def _parent(item: Scope | Unit) -> Scope | None:
    return item.parent if isinstance(item, Scope) else item.scope


def _lines(graph: Graph, node_of: dict[Unit, Shown]) -> tuple[list[Line], list[Link]]:
    """Gather links between the same nodes into lines; also return those inside one closed node."""
    lines: dict[tuple[int, int], Line] = {}
    inner: list[Link] = []
    for link in graph.links:
        source, target = node_of[link.source], node_of[link.target]
        if source is target and source.kind != "unit":
            inner.append(link)
            continue
        key = (id(source), id(target))
        line = lines.get(key)
        if line is None:
            line = lines[key] = Line(source, target, [], source.order >= target.order)
        line.links.append(link)
    into = Counter(id(line.target) for line in lines.values())
    for line in lines.values():
        line.ordered = into[id(line.target)] > 1
    return list(lines.values()), inner
