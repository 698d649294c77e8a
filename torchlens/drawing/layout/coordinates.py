"""Positions across the flow: chains run straight, nothing overlaps.

Four extreme layouts (aligned to the layer above or below, pressed left or right) are averaged, after
Brandes and Köpf, "Fast and simple horizontal coordinate assignment", 2002.  Vertices keep their
widths, and links align at their ports, so a block may hold vertices shifted against each other.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlens.drawing.layout.layers import Layers

Link = tuple[int, float, float, bool]
Links = list[list[Link]]


def assign_x(layers: Layers, item_gap: float, bend_gap: float) -> list[float]:
    """Return the x of every vertex' middle."""
    count = len(layers.width)
    gaps = [bend_gap if bend else item_gap for bend in layers.bend]
    half = [width / 2 + gap / 2 for width, gap in zip(layers.width, gaps, strict=True)]
    conflicts = _conflicts(layers)
    results = []
    for downward in (True, False):
        for mirrored in (False, True):
            sign = -1.0 if mirrored else 1.0
            rows = [row[::-1] for row in layers.rows] if mirrored else layers.rows
            rows = rows if downward else rows[::-1]
            links = layers.up if downward else layers.down
            promised = _promised(layers.down if downward else layers.up)
            root, shift = _align(rows, links, (conflicts, promised), count, sign)
            xs = _compact(rows, root, shift, half)
            results.append([sign * x for x in xs])
    return _balanced(results, half)


def _conflicts(layers: Layers) -> set[tuple[int, int]]:
    """Links that cross the straight part of a long line and so must not be aligned."""
    found: set[tuple[int, int]] = set()
    for above, row in zip(layers.rows, layers.rows[1:], strict=False):
        place = {v: k for k, v in enumerate(above)}
        low, start = 0, 0
        for k, v in enumerate(row):
            inner = _inner(layers, v)
            if inner is None and k != len(row) - 1:
                continue
            high = place[inner] if inner is not None else len(above) - 1
            for w in row[start : k + 1]:
                for u, *_ in layers.up[w]:
                    if not low <= place[u] <= high and not (layers.bend[u] and layers.bend[w]):
                        found.add((u, w))
            low, start = high, k + 1
    return found


def _inner(layers: Layers, v: int) -> int | None:
    if layers.bend[v]:
        for u, *_ in layers.up[v]:
            if layers.bend[u]:
                return u
    return None


def _promised(links: Links) -> list[bool]:
    """Mark the vertices with a main link that way, which other lines must leave to it."""
    return [any(main for *_, main in row) for row in links]


def _align(
    rows: list[list[int]],
    links: Links,
    barred: tuple[set[tuple[int, int]], list[bool]],
    count: int,
    sign: float,
) -> tuple[list[int], list[float]]:
    """Chain every vertex to a median neighbour; return each vertex' root and its shift against it."""
    conflicts, promised = barred
    root, taken = list(range(count)), [False] * count
    shift = [0.0] * count
    place = {v: k for row in rows for k, v in enumerate(row)}
    for row in rows:
        reached = -1
        for v in row:
            wanted = [link for link in links[v] if link[3]] or links[v]
            near = sorted(wanted, key=lambda link: (place[link[0]], sign * link[2]))
            if not near:
                continue
            for k in {(len(near) - 1) // 2: 0, len(near) // 2: 0}:
                u, here, there, main = near[k]
                free = not taken[u] and place[u] > reached and (main or not promised[u])
                if free and (u, v) not in conflicts and (v, u) not in conflicts:
                    taken[u] = True
                    root[v] = root[u]
                    shift[v] = shift[u] + sign * (there - here)
                    reached = place[u]
                    break
    return root, shift


def _compact(rows: list[list[int]], root: list[int], shift: list[float], half: list[float]) -> list[float]:
    """Press the blocks together towards the left, then close gaps towards the right."""
    count = len(root)
    after: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    waiting = [0] * count
    for row in rows:
        for u, v in itertools.pairwise(row):
            after[root[u]].append((root[v], half[u] + half[v] + shift[u] - shift[v]))
            waiting[root[v]] += 1
    order = [v for v in range(count) if root[v] == v and not waiting[v]]
    x = [0.0] * count
    for block in order:
        for other, gap in after[block]:
            x[other] = max(x[other], x[block] + gap)
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    for block in reversed(order):
        if after[block]:
            room = min(x[other] - gap for other, gap in after[block])
            x[block] = max(x[block], room)
    return [x[root[v]] + shift[v] for v in range(count)]


def _balanced(results: list[list[float]], half: list[float]) -> list[float]:
    """Lay the four layouts over the narrowest one and take the mean of the two middle values."""
    if not half:
        return []
    spans = [
        (min(x - h for x, h in zip(xs, half, strict=True)), max(x + h for x, h in zip(xs, half, strict=True)))
        for xs in results
    ]
    low, high = min(spans, key=lambda span: span[1] - span[0])
    moved = []
    for number, (xs, span) in enumerate(zip(results, spans, strict=True)):
        offset = high - span[1] if number % 2 else low - span[0]
        moved.append([x + offset for x in xs])
    return [sum(sorted(four)[1:3]) / 2 for four in zip(*moved, strict=True)]
