"""Which elements of a storage a strided tensor touches, and whether two tensors touch common ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

SEARCH_BUDGET = 4096
"""Steps after which an overlap that is still undecided counts as one (the safe answer)."""


class Region(NamedTuple):
    """A strided set of bytes: first byte, ``(count, step in bytes)`` per dimension, element size."""

    start: int
    dims: tuple[tuple[int, int], ...]
    itemsize: int

    @property
    def empty(self) -> bool:
        """Whether the region holds no element."""
        return any(count == 0 for count, _ in self.dims)

    @property
    def stop(self) -> int:
        """One past the last byte."""
        return self.start + sum((count - 1) * step for count, step in self.dims) + self.itemsize

    @property
    def dense(self) -> bool:
        """Whether every byte from ``start`` to ``stop`` belongs to exactly one element."""
        width = self.itemsize
        for count, step in sorted(self.dims, key=lambda dim: dim[1]):
            if step != width:
                return False
            width *= count
        return True


def region_of(tensor: torch.Tensor) -> Region | None:
    """The region of a strided tensor; ``None`` for layouts without strides."""
    try:
        return region(tensor.shape, tensor.stride(), int(tensor.storage_offset()), tensor.element_size())
    except (RuntimeError, NotImplementedError):
        return None


def region(shape: Sequence[int], strides: Sequence[int], offset: int, itemsize: int) -> Region:
    """A region from a tensor's geometry; dimensions of one element or stride 0 do not widen it."""
    dims = tuple((n, s * itemsize) for n, s in zip(shape, strides) if n == 0 or (n > 1 and s != 0))
    return Region(offset * itemsize, dims, itemsize)


def overlap(a: Region | None, b: Region | None) -> bool:
    """Whether two regions of one storage share a byte; unknown regions do.

    Two elements meet where ``a.start + sum(i_k * s_k)`` and ``b.start + sum(j_k * t_k)`` are closer
    than an element: a bounded integer equation, solved from the largest step down.  Strides of real
    tensors nest, so that each step leaves only one or two candidates.
    """
    if a is None or b is None:
        return True
    if a.empty or b.empty or a.stop <= b.start or b.stop <= a.start:
        return False
    terms: dict[int, list[int]] = {}
    for count, step in a.dims:
        terms.setdefault(step, [0, 0])[1] += count - 1
    for count, step in b.dims:
        terms.setdefault(step, [0, 0])[0] -= count - 1
    steps = sorted(terms, reverse=True)
    bounds = [(step, terms[step][0], terms[step][1]) for step in steps]
    return _reachable(bounds, b.start - a.start, 1 - b.itemsize, a.itemsize - 1)


def _reachable(bounds: list[tuple[int, int, int]], target: int, low: int, high: int) -> bool:
    """Whether ``target - sum(c * step)`` can fall into ``[low, high]`` within the bounds of each c."""
    reach: list[tuple[int, int]] = [(0, 0)]
    for step, lo, hi in reversed(bounds):
        reach.append((reach[-1][0] + step * lo, reach[-1][1] + step * hi))
    reach.reverse()
    stack = [(0, target)]
    for _ in range(SEARCH_BUDGET):
        if not stack:
            return False
        depth, rest = stack.pop()
        if depth == len(bounds):
            if low <= rest <= high:
                return True
            continue
        step, lo, hi = bounds[depth]
        under, over = reach[depth + 1]
        first = max(lo, -((over + high - rest) // step))
        last = min(hi, (rest - low - under) // step)
        if last - first >= SEARCH_BUDGET:
            return True
        stack.extend((depth + 1, rest - c * step) for c in range(first, last + 1))
    return True


def covers(outer: Region | None, inner: Region | None) -> bool:
    """Whether ``outer`` surely holds every byte of ``inner``: equal, or dense and at least as wide."""
    if outer is None or inner is None:
        return False
    if outer == inner:
        return True
    return outer.dense and outer.start <= inner.start and inner.stop <= outer.stop
