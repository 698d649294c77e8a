"""Following one dimension of a tensor through ops that move data and compute nothing across it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from torchlens.capture.recording import TensorRecord

if TYPE_CHECKING:
    from torchlens.capture.facts import TensorFacts
    from torchlens.trace.op import Op
    from torchlens.trace.parts import Edge

Shape = tuple[int, ...]

_RESHAPES = """
view reshape flatten unflatten squeeze unsqueeze expand expand_as broadcast_to view_as reshape_as
repeat_interleave repeat contiguous clone
"""
RESHAPES = frozenset(_RESHAPES.split())
SWAPS = frozenset(["transpose", "swapaxes", "swapdims"])
LAST_TWO = frozenset(["mT", "adjoint", "mH", "t"])


def record_of(edge: Edge) -> TensorRecord:
    """The tensor that travels on an edge."""
    return edge.parent.records[min(edge.out_index, len(edge.parent.records) - 1)]


def shape_of(edge: Edge) -> Shape:
    """Shape of the tensor that travels on an edge."""
    facts: TensorFacts | None = record_of(edge).facts
    return facts.shape if facts is not None else ()


def axis_before(op: Op, axis: int, given: Shape, made: Shape) -> int | None:
    """Where dimension ``axis`` (from 0) of an op's output stood in its input; ``None`` if it is gone."""
    permutation = _permutation(op, len(given))
    if permutation is not None:
        return permutation[axis] if axis < len(permutation) else None
    if op.type in RESHAPES:
        return _same_place(made, axis, given)
    shifted = axis - len(made) + len(given)
    return shifted if 0 <= shifted < len(given) else None


def axis_after(op: Op, axis: int, given: Shape, made: Shape) -> int | None:
    """Where dimension ``axis`` (from 0) of an op's input stands in its output."""
    permutation = _permutation(op, len(given))
    if permutation is not None:
        return permutation.index(axis) if axis in permutation else None
    if op.type in RESHAPES:
        return _same_place(given, axis, made)
    shifted = axis - len(given) + len(made)
    return shifted if 0 <= shifted < len(made) else None


def _same_place(of: Shape, axis: int, among: Shape) -> int | None:
    """The dimension of equal size with as many elements to its right: a reshape leaves it where it is."""
    right = math.prod(of[axis + 1 :])
    for candidate in reversed(range(len(among))):
        if among[candidate] == of[axis] and math.prod(among[candidate + 1 :]) == right:
            return candidate
    return None


def _permutation(op: Op, rank: int) -> list[int] | None:
    """For each output dimension the input dimension that it was, for ops that reorder dimensions."""
    assert op.record is not None
    order = list(range(rank))
    rest = [*op.record.args[1:], *op.record.kwargs.values()]
    if op.type in SWAPS and len(rest) > 1 and all(isinstance(item, int) for item in rest[:2]):
        first, second = rest[0] % rank, rest[1] % rank
        order[first], order[second] = order[second], order[first]
        return order
    if op.type in LAST_TWO and rank > 1:
        order[-1], order[-2] = order[-2], order[-1]
        return order
    if op.type == "T":
        return order[::-1]
    if op.type == "permute":
        listed = rest[0] if rest and isinstance(rest[0], (tuple, list)) else rest
        return [int(item) % rank for item in listed]
    if op.type in ("movedim", "moveaxis") and len(rest) > 1 and isinstance(rest[0], int):
        order.insert(rest[1] % rank, order.pop(rest[0] % rank))
        return order
    return None
