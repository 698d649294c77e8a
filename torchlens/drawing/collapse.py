"""How far to collapse: levels from all open to all closed, and the search for a legible one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torchlens.drawing.fold import Run
from torchlens.drawing.graph import Graph, Scope, Unit

MOST, LEAST, TARGET = 220, 100, 160
"""Visible nodes of a legible drawing: at most, at least, and what a search outside of that aims at."""
SHARE = 0.8
"""Share of the coloured values that has to stay visible."""


class Level(NamedTuple):
    """Closing every call of at most ``size`` units leaves ``visible`` nodes and ``values`` of them coloured.

    ``level`` runs from 0, nothing closed, to 1, everything closed.
    """

    level: float
    size: int
    visible: int
    values: int


def levels(
    graph: Graph, runs: Sequence[Run] = (), *, has_value: Callable[[Unit], bool] = lambda unit: True
) -> list[Level]:
    """Every level of a graph, counted without drawing any.

    Parameters
    ----------
    graph : Graph
    runs : sequence of Run
        Folded neighbours; the rest of each is one node.
    has_value : callable
        Whether a unit's own colour would be lost by closing the call around it.
    """
    scopes, visible, values = _open(graph, runs, has_value)
    found = [(0, visible, values)]
    ordered = sorted(scopes, key=lambda item: (item[0].size, -item[0].depth))
    for position, (scope, members, own_values) in enumerate(ordered):
        visible += 1 - members
        values -= own_values
        if position + 1 == len(ordered) or ordered[position + 1][0].size > scope.size:
            found.append((scope.size, visible, values))
    last = max(1, len(found) - 1)
    return [Level(position / last, *rest) for position, rest in enumerate(found)]


def _open(
    graph: Graph, runs: Sequence[Run], has_value: Callable[[Unit], bool]
) -> tuple[list[tuple[Scope, int, int]], int, int]:
    """Each drawn scope with its members and values once all inside is closed; totals with all open."""
    rest = {scope: position for run in runs for position, scope in enumerate(run.rest)}
    found: list[tuple[Scope, int, int]] = []
    visible = values = 0
    stack = [graph.root]
    while stack:
        scope = stack.pop()
        units = [item for item in scope.items if isinstance(item, Unit)]
        inner = [item for item in scope.items if isinstance(item, Scope) and item not in rest]
        folded = sum(rest.get(item) == 0 for item in scope.items if isinstance(item, Scope))
        own = sum(map(has_value, units))
        visible += len(units) + folded
        values += own
        if scope is not graph.root:
            found.append((scope, len(units) + folded + len(inner), own))
        stack += inner
    return found, visible, values


def closed_at(graph: Graph, size: int) -> set[Scope]:
    """The scopes that a level with this size closes."""
    return {scope for scope in graph.scopes() if scope.size <= size} if size else set()


def at(table: Sequence[Level], level: float) -> Level:
    """The level of a table that a number from 0 to 1 means."""
    return table[int(level * (len(table) - 1) + 0.5)]


def search(table: Sequence[Level], *, keep_values: bool = False) -> tuple[Level, bool]:
    """The coarsest legible level, and whether it lies in the band.

    Parameters
    ----------
    table : sequence of Level
        From :func:`levels`, finest first.
    keep_values : bool
        Whether at least 80 percent of the coloured values have to stay visible.
    """
    full = table[0]
    if full.visible <= MOST:
        return full, True
    allowed = [row for row in table if not keep_values or row.values >= SHARE * full.values]
    fitting = [row for row in allowed if LEAST <= row.visible <= MOST]
    if fitting:
        return fitting[-1], True
    return min(allowed, key=lambda row: (abs(row.visible - TARGET), row.visible)), False
