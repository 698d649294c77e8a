"""The order of vertices within their layers: barycentre sweeps, and ``dot`` where lines still cross."""

from __future__ import annotations

from torchlens.drawing.layout import graphviz
from torchlens.drawing.layout.layers import Layers, Link

SWEEPS = 4
DOT_VERTICES = 800
"""Most vertices that ``dot`` gets; its time grows with their square."""
MAIN = 5
"""How much more a main line counts than another when it is crossed or bent."""


def orders(layers: Layers, columns: list[list[int]]) -> list[tuple[int, list[list[int]]]]:
    """Return orders of the layers with few crossings, each with its count of them.

    The items of a column stay in flow order.
    """
    fewest = _sweep(layers, columns)
    found = [(fewest, layers.rows)]
    if fewest and not columns and len(layers.width) <= DOT_VERTICES:
        layers.rows = graphviz.ordered(layers)
        found.append((crossings(layers), layers.rows))
    return found


def _sweep(layers: Layers, columns: list[list[int]]) -> int:
    """Sort by the mean place of the neighbours, and keep the best order; return its crossings."""
    column_of = {v: members for members in columns for v in members}
    best, fewest = [list(row) for row in layers.rows], crossings(layers)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        downward = sweep % 2 == 0
        links = layers.up if downward else layers.down
        place = {v: float(k) for row in layers.rows for k, v in enumerate(row)}
        for row in layers.rows if downward else reversed(layers.rows):
            if len(row) > 1:
                row.sort(key=lambda v: _mean(links[v], place, layers.width, place[v]))
                _in_flow_order(row, column_of)
                for k, v in enumerate(row):
                    place[v] = float(k)
        now = crossings(layers)
        if now < fewest:
            best, fewest = [list(row) for row in layers.rows], now
    layers.rows = best
    return fewest


def _in_flow_order(row: list[int], column_of: dict[int, list[int]]) -> None:
    """Put the items of a column in flow order, on the places that they hold in the layer."""
    if not column_of:
        return
    for members in {id(c): c for c in (column_of.get(v) for v in row) if c}.values():
        places = sorted(row.index(v) for v in members)
        for place, v in zip(places, members, strict=True):
            row[place] = v


def _mean(links: list[Link], place: dict[int, float], width: list[float], own: float) -> float:
    if not links:
        return own
    total = weight = 0.0
    for v, _, there, main in links:
        pull = MAIN if main else 1.0
        total += pull * (place[v] + there / (width[v] + 1))
        weight += pull
    return total / weight


def crossings(layers: Layers) -> int:
    """Count crossings between neighbouring layers with a binary indexed tree, main lines heavily."""
    total = 0
    for row, below in zip(layers.rows, layers.rows[1:], strict=False):
        if len(row) == len(below) == 1:
            continue
        place = {v: k for k, v in enumerate(below)}
        heads = []
        for u in row:
            links = sorted((here, place[v], there, main) for v, here, there, main in layers.down[u])
            heads += [((spot, there), MAIN if main else 1) for _, spot, there, main in links]
        rank = {head: k for k, head in enumerate(sorted({head for head, _ in heads}))}
        total += _inversions([(rank[head], weight) for head, weight in heads], len(rank))
    return total


def _inversions(values: list[tuple[int, int]], size: int) -> int:
    tree, total, seen = [0] * (size + 1), 0, 0
    for value, weight in values:
        k, before = value + 1, 0
        while k:
            before += tree[k]
            k &= k - 1
        total += weight * (seen - before)
        seen += weight
        k = value + 1
        while k <= size:
            tree[k] += weight
            k += k & -k
    return total
