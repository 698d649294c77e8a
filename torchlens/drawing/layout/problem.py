"""One scope as a flat layout problem, and its solution.

Both are in flow coordinates: ``y`` runs with the flow, ``x`` across it, whatever the direction of the
picture.  They are plain hashable data, so that equal scopes share one solution and engines can be
swapped and tested alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchlens.drawing.layout.placed import Point

BORDER = -1
"""Stands for the scope's own border where an item index is expected."""


@dataclass(frozen=True, slots=True)
class Item:
    """A node or a closed-up child box: a rectangle with attachment points on top and bottom."""

    width: float
    height: float
    ins: tuple[float, ...]
    outs: tuple[float, ...]
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of an edge that lies in one scope; ends are ``(item or BORDER, port index)``."""

    tail: tuple[int, int]
    head: tuple[int, int]
    back: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Items and segments of one scope, with the number of ports on its own border.

    ``texts`` lists ``(segment, room at its tail, room at its head)`` for segments with text beside them;
    the rooms are lengths along the flow.  The start stands within ``reach`` points across the flow.
    """

    items: tuple[Item, ...]
    segments: tuple[Segment, ...]
    entries: int
    exits: int
    rank_gap: float
    item_gap: float
    texts: tuple[tuple[int, float, float], ...] = ()
    reach: float = math.inf


@dataclass(slots=True)
class Solution:
    """Top left corners of items, x of border ports, and a curve a segment.

    Entries stand at ``y = 0`` and exits at ``y = height``.
    """

    width: float
    height: float
    corners: list[Point]
    entry_x: list[float]
    exit_x: list[float]
    curves: list[list[Point]]


def anchor_out(problem: Problem, solution: Solution, end: tuple[int, int]) -> Point:
    """Where a segment starts."""
    item, port = end
    if item == BORDER:
        return solution.entry_x[port], 0.0
    x, y = solution.corners[item]
    return x + problem.items[item].outs[port], y + problem.items[item].height


def anchor_in(problem: Problem, solution: Solution, end: tuple[int, int]) -> Point:
    """Where a segment ends."""
    item, port = end
    if item == BORDER:
        return solution.exit_x[port], solution.height
    x, y = solution.corners[item]
    return x + problem.items[item].ins[port], y


def straight(start: Point, end: Point) -> list[Point]:
    """Return a straight line as the three further points of a Bezier piece."""
    (x0, y0), (x1, y1) = start, end
    return [(x0 + (x1 - x0) / 3, y0 + (y1 - y0) / 3), (x0 + 2 * (x1 - x0) / 3, y0 + 2 * (y1 - y0) / 3), end]


def swing(start: Point, end: Point) -> list[Point]:
    """Return an S-shaped piece that leaves and arrives along the flow."""
    middle = (start[1] + end[1]) / 2
    return [(start[0], middle), (end[0], middle), end]
