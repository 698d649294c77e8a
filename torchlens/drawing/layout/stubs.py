"""Which edges of a crowded scope become tags instead of lines, and what the tags say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from torchlens.drawing.layout.problem import Item, Problem
from torchlens.drawing.layout.ranks import rank
from torchlens.drawing.layout.tree import Routes, ScopeGraph, Tree
from torchlens.drawing.scene import Scene

CROWD = 120
"""A scope with more members than this counts as crowded."""
SPAN = 16
"""A line that runs over more levels than this is far-reaching."""
FAN = 12
"""A producer with more consumers than this in one scope has a high fan-out."""
FAN_SPAN = 2
MOST_TAGS = 3


@dataclass(slots=True)
class Tags:
    """The tags of one node: names of producers, and how many consumers are not joined by lines."""

    incoming: list[str] = field(default_factory=list)
    outgoing: int = 0

    def lines(self) -> list[str]:
        """Return the texts beside the consumer."""
        names = list(dict.fromkeys(self.incoming))
        if len(names) > MOST_TAGS:
            return [*names[: MOST_TAGS - 1], f"+{len(names) - MOST_TAGS + 1} more"]
        return names


def choose(scene: Scene, tree: Tree, routes: Routes) -> frozenset[int]:
    """Return the numbers of the edges that become tags."""
    if scene.long_edges == "line":
        return frozenset()
    always = scene.long_edges == "stub"
    far = {
        (scope, number)
        for scope, graph in routes.graphs.items()
        if always or len(graph.members) > CROWD
        for number in _far(scene, tree, graph)
    }
    if not far:
        return frozenset()
    return frozenset(
        number
        for number, parts in routes.parts.items()
        if not scene.edges[number].back and any(part in far for part in parts)
    )


def _far(scene: Scene, tree: Tree, graph: ScopeGraph) -> list[int]:
    """Return the segments of a scope that reach too far, or leave a busy port for more than a few levels."""
    items = tuple(_flat_item(scene, tree, member) for member in graph.members)
    problem = Problem(items, tuple(graph.segments), len(graph.entries), len(graph.exits), 0.0, 0.0)
    ranking = rank(problem)
    fan = Counter(segment.tail for segment in graph.segments)
    return [
        number
        for segment, number in graph.segments.items()
        if ranking.kinds[number] == "forward"
        and (ranking.span(segment) > SPAN or (fan[segment.tail] > FAN and ranking.span(segment) > FAN_SPAN))
    ]


def _flat_item(scene: Scene, tree: Tree, member: int) -> Item:
    part = scene.nodes[member] if member < tree.nodes else scene.boxes[member - tree.nodes]
    return Item(0.0, 0.0, (), (), part.column)


def tags(scene: Scene, tree: Tree, chosen: frozenset[int]) -> dict[int, Tags]:
    """Collect the tags of every node that has some."""
    found: dict[int, Tags] = {}
    for number in sorted(chosen):
        edge = scene.edges[number]
        source, target = tree.node_number[edge.source], tree.node_number[edge.target]
        rows = scene.nodes[source].rows
        found.setdefault(target, Tags()).incoming.append(rows[0].text if rows else edge.source)
        found.setdefault(source, Tags()).outgoing += edge.count
    return found
