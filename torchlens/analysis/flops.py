"""Floating point operations of each call, from recorded shapes.

Counting needs no values and runs nothing: a rule per function answers from the shapes.  Functions without
a rule are asked of ``torch.utils.flop_counter`` on meta tensors; where that has no formula either, the
count is unknown, never 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlens._collector import rare_collections
from torchlens.analysis.flop_fallback import Fallback
from torchlens.analysis.flop_rules import RULES
from torchlens.analysis.flop_rules.registry import SHAPELESS, Given, Work, from_torch, ragged
from torchlens.capture.functions import type_of

if TYPE_CHECKING:
    from torchlens.capture.recording import CallRecord
    from torchlens.trace.op import Op
    from torchlens.trace.trace import Trace

_NO_ANSWER = (LookupError, TypeError, ValueError, AttributeError, ZeroDivisionError, StopIteration)


@rare_collections()
def work(trace: Trace) -> list[Work | None]:
    """Multiply-adds and other operations by position in ``trace.ops``.

    ``None`` for what is no call, for calls that raised, and where no rule knows.
    """
    derived = trace.recording.derived
    if derived is not None:
        given = iter(None if done is None else Work(*done) for done in derived.work)
        return [next(given) if op.kind == "call" else None for op in trace.ops]
    fallback = Fallback()
    found: list[Work | None] = []
    for op in trace.ops:
        call = op.record
        if call is None or call.failed:
            found.append(None)
        else:
            known = work_of(call)
            found.append(known if known is not None else fallback.work_of(call))
    return found


def flops(trace: Trace) -> list[int | None]:
    """Floating point operations by position in ``trace.ops``; a multiply-add is two."""
    return [None if done is None else done.flops for done in work(trace)]


def macs(trace: Trace) -> list[int | None]:
    """Multiply-adds of matrix products and convolutions by position in ``trace.ops``."""
    return [None if done is None else done.macs for done in work(trace)]


def softmax_flops(op: Op) -> int:
    """What a fused attention does besides its products and its ``flops`` leave out: scale, mask, softmax."""
    if op.record is None or "scaled_dot_product" not in op.type:
        return 0
    done = work_of(op.record)
    return 0 if done is None else done.inside


def work_of(call: CallRecord) -> Work | None:
    """What the rules say of one call; ``None`` if there is no rule or it does not fit the arguments."""
    if not from_torch(call.func):
        return None
    name = type_of(call.name)
    rule = RULES.get(name)
    if rule is None:
        return None
    given = Given(call)
    if name not in SHAPELESS and any(ragged(fact) for fact in (*given.tensors(), *given.outs)):
        return None
    try:
        answer = rule(given)
    except _NO_ANSWER:
        return None
    return answer if isinstance(answer, Work) else Work(0, int(answer))
