"""Equal blocks look equal: scopes of one structure get the same node widths.

Without this, ``h.9`` and ``h.10`` would differ by the width of a digit, and every block of a deep model
would be laid out for itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import replace

from torchlens.drawing.layout.frames import Room
from torchlens.drawing.layout.tree import Routes, Tree
from torchlens.drawing.scene import Scene

TOLERANCE = 30.0
"""Widths that differ by more than this stay as they are."""

Title = tuple[float, float]


def harmonise(scene: Scene, tree: Tree, routes: Routes, rooms: list[Room], titles: dict[int, Title]) -> None:
    """Widen rooms and titles to the widest of their like."""
    kinds: dict[Hashable, int] = {}
    kind_of: dict[int, int] = {}
    alike: dict[int, list[int]] = defaultdict(list)
    for scope in tree.scopes_inside_out():
        graph = routes.graphs[scope]
        members = tuple(
            _node_kind(scene, rooms, member) if member < tree.nodes else kind_of[member]
            for member in graph.members
        )
        title = titles.get(scope, (0.0, 0.0))
        key = (members, tuple(graph.segments), len(graph.entries), len(graph.exits), title[1])
        kind_of[scope] = kinds.setdefault(key, len(kinds))
        alike[kind_of[scope]].append(scope)
    for scopes in alike.values():
        if len(scopes) > 1:
            _widen_titles(scopes, titles)
            for same in zip(*(routes.graphs[scope].members for scope in scopes), strict=True):
                if same[0] < tree.nodes:
                    _widen_rooms(same, rooms)


def _node_kind(scene: Scene, rooms: list[Room], member: int) -> Hashable:
    node, room = scene.nodes[member], rooms[member]
    return (
        "node",
        room.height,
        room.top,
        room.bottom,
        bool(room.left),
        bool(room.right),
        room.least_height,
        node.size,
        node.column,
    )


def _widen_titles(scopes: list[int], titles: dict[int, Title]) -> None:
    widths = [titles[scope][0] for scope in scopes if scope in titles]
    if widths and (widest := max(widths)) - min(widths) <= TOLERANCE:
        for scope in scopes:
            titles[scope] = (widest, titles[scope][1])


def _widen_rooms(members: tuple[int, ...], rooms: list[Room]) -> None:
    same = [rooms[member] for member in members]
    for side in ("width", "left", "right", "least_width"):
        values = [getattr(room, side) for room in same]
        if (widest := max(values)) - min(values) > TOLERANCE:
            return
        if widest != min(values):
            same = [replace(room, **{side: widest}) for room in same]
    for member, room in zip(members, same, strict=True):
        rooms[member] = room
