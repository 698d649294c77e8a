"""The nesting of a scene, and every edge cut into the parts that lie in one scope each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from torchlens.drawing.layout.problem import BORDER, Segment
from torchlens.drawing.scene import ROOT, Scene, SceneBox, SceneError, SceneNode

TOP = -1
"""Number of the scope that is no box."""


@dataclass(slots=True)
class Tree:
    """Members (nodes first, then boxes, by number) and the scope (a box' number, or TOP) of each."""

    nodes: int
    node_number: dict[str, int]
    box_number: dict[str, int]
    parent: list[int]
    depth: list[int]
    children: dict[int, list[int]]

    def scopes_inside_out(self) -> list[int]:
        """Return every scope, inner ones before those around them."""
        boxes = range(self.nodes, len(self.parent))
        return [*sorted(boxes, key=lambda box: -self.depth[box]), TOP]

    def way_up(self, member: int) -> list[int]:
        """Return the scopes around a member, innermost first, without TOP."""
        way = []
        while (member := self.parent[member]) != TOP:
            way.append(member)
        return way


def grow(scene: Scene) -> Tree:
    """Read the nesting of a scene and check it."""
    node_number = _numbers("node", (node.id for node in scene.nodes), 0)
    box_number = _numbers("box", (box.id for box in scene.boxes), len(scene.nodes))
    numbers = {ROOT: TOP} | box_number
    parent: list[int] = []
    children: dict[int, list[int]] = {number: [] for number in (TOP, *box_number.values())}
    parts: list[SceneNode | SceneBox] = [*scene.nodes, *scene.boxes]
    for member, part in enumerate(parts):
        if part.scope not in numbers:
            raise SceneError(f"{part.id!r} stands in the box {part.scope!r}, which the scene does not have")
        parent.append(numbers[part.scope])
        children[parent[-1]].append(member)
    return Tree(len(scene.nodes), node_number, box_number, parent, _depths(scene, parent), children)


def _numbers(kind: str, ids: Iterable[str], first: int) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for number, name in enumerate(ids, first):
        if name in numbers or (kind == "box" and name == ROOT):
            raise SceneError(f"the scene has more than one {kind} {name!r}")
        numbers[name] = number
    return numbers


def _depths(scene: Scene, parent: list[int]) -> list[int]:
    depth: list[int] = [-1] * len(parent)
    for member in range(len(parent)):
        way = []
        while member != TOP and depth[member] < 0:
            way.append(member)
            if len(way) > len(parent):
                raise SceneError("boxes of the scene stand inside each other in a circle")
            member = parent[member]
        base = -1 if member == TOP else depth[member]
        for step, inner in enumerate(reversed(way), 1):
            depth[inner] = base + step
    return depth


@dataclass(slots=True)
class ScopeGraph:
    """Members of one scope and the segments between them; ports are numbered as they first appear."""

    members: list[int]
    place: dict[int, int]
    entries: dict[tuple[int, bool], int] = field(default_factory=dict)
    exits: dict[tuple[int, bool], int] = field(default_factory=dict)
    segments: dict[Segment, int] = field(default_factory=dict)
    numbered: list[Segment] = field(default_factory=list)

    def add(self, segment: Segment) -> int:
        """Return the number of a segment, which equal parts of several edges share."""
        number = self.segments.setdefault(segment, len(self.segments))
        if number == len(self.numbered):
            self.numbered.append(segment)
        return number


Part = tuple[int, int]
"""A scope and the number of a segment in it."""


@dataclass(slots=True)
class Routes:
    """The graph of every scope, and for each drawn edge its parts from producer to consumer."""

    graphs: dict[int, ScopeGraph]
    parts: dict[int, list[Part]]


def cut(scene: Scene, tree: Tree, *, without: frozenset[int] = frozenset()) -> Routes:
    """Cut all edges but those in ``without`` at the borders that they cross."""
    graphs = {
        scope: ScopeGraph(members, {member: k for k, member in enumerate(members)})
        for scope, members in tree.children.items()
    }
    parts = {}
    for number, edge in enumerate(scene.edges):
        for end in (edge.source, edge.target):
            if end not in tree.node_number:
                raise SceneError(f"an edge ends at {end!r}, which is no node of the scene")
        if number not in without:
            ends = tree.node_number[edge.source], tree.node_number[edge.target]
            parts[number] = _parts(graphs, tree, *ends, edge.back)
    return Routes(graphs, parts)


def _parts(graphs: dict[int, ScopeGraph], tree: Tree, source: int, target: int, back: bool) -> list[Part]:
    up, down = tree.way_up(source), tree.way_up(target)
    while up and down and up[-1] == down[-1]:
        up.pop()
        down.pop()
    key, parts = (source, back), []
    tail = (source, 0)
    for box in up:
        port = graphs[box].exits.setdefault(key, len(graphs[box].exits))
        parts.append((box, graphs[box].add(Segment(_end(graphs[box], tail), (BORDER, port)))))
        tail = (box, port)
    meeting = tree.parent[tail[0]]
    for box in reversed(down):
        port = graphs[box].entries.setdefault(key, len(graphs[box].entries))
        scope = tree.parent[box]
        start = _end(graphs[scope], tail)
        segment = Segment(start, (graphs[scope].place[box], port), back and scope == meeting)
        parts.append((scope, graphs[scope].add(segment)))
        tail = (BORDER, port)
    scope = tree.parent[target]
    head = (graphs[scope].place[target], 0)
    segment = Segment(_end(graphs[scope], tail), head, back and scope == meeting)
    parts.append((scope, graphs[scope].add(segment)))
    return parts


def _end(graph: ScopeGraph, end: tuple[int, int]) -> tuple[int, int]:
    return end if end[0] == BORDER else (graph.place[end[0]], end[1])
