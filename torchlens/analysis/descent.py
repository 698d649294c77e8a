"""Whether calls descend from other calls, for many pairs at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

CHUNK = 4096
"""Pairs followed in one sweep: one bit each in the sets that are handed down the graph."""


def descending(pairs: Iterable[tuple[int, int]], parents: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """Those ``(earlier, later)`` pairs in which the later call depends on the earlier one's output.

    Each sweep hands one bit per pair from parents to children, only over the calls that its pairs span;
    memory stays at ``CHUNK`` bits per call spanned.
    """
    ordered = sorted(pairs)
    found: set[tuple[int, int]] = set()
    for start in range(0, len(ordered), CHUNK):
        _sweep(ordered[start : start + CHUNK], parents, found)
    return found


def _sweep(
    pairs: list[tuple[int, int]], parents: Sequence[Sequence[int]], found: set[tuple[int, int]]
) -> None:
    first, last = pairs[0][0], max(later for _, later in pairs)
    starting: dict[int, int] = {}
    ending: dict[int, list[tuple[int, int]]] = {}
    for bit, (earlier, later) in enumerate(pairs):
        starting[earlier] = starting.get(earlier, 0) | 1 << bit
        ending.setdefault(later, []).append((bit, earlier))
    reached = [0] * (last - first + 1)
    for call in range(first, last + 1):
        bits = 0
        for parent in parents[call]:
            if parent >= first:
                bits |= reached[parent - first]
        for bit, earlier in ending.get(call, ()):
            if bits >> bit & 1:
                found.add((earlier, call))
        reached[call - first] = bits | starting.get(call, 0)
