"""Solve every scope from the inside out, then give everything its place from the outside in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchlens.drawing.layout.engine import solve
from torchlens.drawing.layout.flow import joined, tidy
from torchlens.drawing.layout.frames import Frame, Room, frame_of
from torchlens.drawing.layout.labels import room_for, texts_of
from torchlens.drawing.layout.placed import Curve, Point
from torchlens.drawing.layout.problem import BORDER, Problem, Solution, swing
from torchlens.drawing.layout.tree import TOP, Routes, Tree
from torchlens.drawing.layout.wrap import wrapped
from torchlens.drawing.scene import Scene

RANK_GAP = 26.0
LABEL_GAP = 34.0
LABEL_PAD = 17.0
MOST_LABEL_ROOM = 140.0
REACH = (900.0, 400.0)
"""How far across the flow a picture may start, topdown and leftright: within the first screen."""
ITEM_GAP = 20.0


@dataclass(slots=True)
class Composition:
    """Solutions and frames by scope, and the corner of every member, in flow coordinates."""

    width: float
    height: float
    solutions: dict[int, Solution]
    frames: dict[int, Frame]
    corners: list[Point]
    origins: dict[int, Point]


def compose(
    scene: Scene,
    tree: Tree,
    routes: Routes,
    rooms: list[Room],
    titles: dict[int, tuple[float, float]],
    label_size: float,
) -> Composition:
    """Lay out all scopes; equal ones are solved once."""
    known: dict[Problem, Solution] = {}
    solutions: dict[int, Solution] = {}
    frames: dict[int, Frame] = {}
    texts = _text_rooms(scene, routes, label_size)
    spine = _spine(tree) if scene.wrap and scene.direction != "leftright" else None
    for scope in tree.scopes_inside_out():
        graph = routes.graphs[scope]
        items = tuple(
            rooms[member].item(scene.direction, scene.nodes[member].column)
            if member < tree.nodes
            else frames[member].item(scene.boxes[member - tree.nodes].column)
            for member in graph.members
        )
        sizes = len(graph.entries), len(graph.exits)
        beside = tuple((number, *room) for number, room in sorted(texts.get(scope, {}).items()))
        reach = REACH[scene.direction == "leftright"] if scope == TOP else math.inf
        problem = Problem(items, tuple(graph.segments), *sizes, RANK_GAP, ITEM_GAP, beside, reach)
        if problem not in known:
            known[problem] = solve(problem)
        solutions[scope] = wrapped(problem, known[problem]) if scope == spine else known[problem]
        if scope != TOP:
            frames[scope] = frame_of(solutions[scope], titles[scope], scene.direction)
    corners, origins = _places(tree, routes, solutions, frames)
    top = solutions[TOP]
    return Composition(top.width, top.height, solutions, frames, corners, origins)


def _text_rooms(scene: Scene, routes: Routes, size: float) -> dict[int, dict[int, tuple[float, float]]]:
    """Return, by scope and segment, the room along the flow that texts need at its tail and head."""
    rooms: dict[int, dict[int, tuple[float, float]]] = {}
    for number, parts in routes.parts.items():
        tail, label, head = texts_of(scene.edges[number])
        ends = (tail, parts[0], False), (f"{head} {label}".strip(), parts[-1], True)
        for text, (scope, segment), at_head in ends:
            if not text:
                continue
            need = LABEL_GAP
            if scene.direction == "leftright":
                need = min(math.ceil(room_for(text, size)[0]) + LABEL_PAD, MOST_LABEL_ROOM)
            known = rooms.setdefault(scope, {})
            behind, before = known.get(segment, (0.0, 0.0))
            known[segment] = (behind, max(before, need)) if at_head else (max(behind, need), before)
    return rooms


def _spine(tree: Tree) -> int:
    """Return the outermost scope that branches: the one whose members may stand in columns."""
    scope = TOP
    while True:
        boxes = [member for member in tree.children[scope] if member >= tree.nodes]
        if len(boxes) != 1 or len(tree.children[scope]) > 4:
            return scope
        scope = boxes[0]


def _places(
    tree: Tree, routes: Routes, solutions: dict[int, Solution], frames: dict[int, Frame]
) -> tuple[list[Point], dict[int, Point]]:
    corners: list[Point] = [(0.0, 0.0)] * len(tree.parent)
    origins = {TOP: (0.0, 0.0)}
    for scope in reversed(tree.scopes_inside_out()):
        if scope != TOP:
            x, y = corners[scope]
            origins[scope] = (x + frames[scope].dx, y + frames[scope].dy)
        x0, y0 = origins[scope]
        for member, (x, y) in zip(routes.graphs[scope].members, solutions[scope].corners, strict=True):
            corners[member] = (x + x0, y + y0)
    return corners, origins


def edge_curve(composition: Composition, routes: Routes, number: int) -> Curve:
    """Return one edge as a continuous line through all borders, in flow coordinates."""
    curve: list[Point] = []
    for scope, segment_number in routes.parts[number]:
        x0, y0 = composition.origins[scope]
        piece = [(x + x0, y + y0) for x, y in composition.solutions[scope].curves[segment_number]]
        if scope != TOP:
            piece = _to_border(composition, scope, routes, segment_number, piece)
        curve = joined(curve, piece)
    return tidy(curve)


def _to_border(
    composition: Composition, scope: int, routes: Routes, number: int, piece: list[Point]
) -> list[Point]:
    """Lead the ends at the scope's own ports on to the frame around it."""
    segment = routes.graphs[scope].numbered[number]
    x, y = composition.corners[scope]
    frame = composition.frames[scope]
    if segment.tail[0] == BORDER:
        piece = joined([(piece[0][0], y)], piece)
    if segment.head[0] == BORDER:
        port = (x + frame.outs[segment.head[1]], y + frame.height)
        if frame.swing:
            piece = piece + swing(piece[-1], (port[0], piece[-1][1] + frame.swing))
        piece = joined(piece, [port])
    return piece
