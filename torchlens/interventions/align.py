"""Which op of one trace is which op of another trace of the same model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.trace import Trace

Place = tuple[Any, ...]


class Alignment(NamedTuple):
    """Pairs of ops that stand at the same place, and those without a partner."""

    pairs: list[tuple[Op, Op]]
    only_first: list[Op]
    only_second: list[Op]


def align(first: Trace, second: Trace) -> Alignment:
    """Match ops by module call, function and order; what has no partner there is not guessed."""
    theirs = dict(places(second))
    pairs: list[tuple[Op, Op]] = []
    missing: list[Op] = []
    for place, op in places(first):
        other = theirs.pop(place, None)
        if other is None:
            missing.append(op)
        else:
            pairs.append((op, other))
    return Alignment(pairs, missing, list(theirs.values()))


def places(trace: Trace) -> Iterator[tuple[Place, Op]]:
    """Every op with where it stands: module call, function, and which one there.

    Inputs, buffers and outputs stand at their address.
    """
    seen: Counter[Place] = Counter()
    for op in trace.ops:
        where: Place = (op.kind, op.address)
        if op.kind == "call":
            call = op.call
            where = (op.kind, None if call is None else (call.module.address, call.pass_index), op.func_name)
        seen[where] += 1
        yield (*where, seen[where]), op


def shape_of(op: Op) -> str:
    """Shapes of an op's outputs, for messages."""
    return ", ".join(str(shape) for shape in op.shapes)
