"""Runs of module calls that are equal inside: the blocks that a drawing needs to show only once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchlens._collector import rare_collections
from torchlens.analysis.structure import Structures
from torchlens.capture.recording import records_in

if TYPE_CHECKING:
    from torchlens.trace.parts import Call
    from torchlens.trace.trace import Trace

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A run of at least two neighbouring module calls with equal insides.

    Attributes
    ----------
    parent : Call or None
        The innermost call around all of them; ``None`` at the top.
    calls : tuple of Call
        In the order in which they ran.
    equal_sizes : bool
        Whether all tensors inside have equal shapes too.
    sizes : tuple
        For each call the shapes that it returned.
    chained : bool
        Whether each call reads what the one before made, as blocks of a stack do and branches do not.
    across : bool
        Whether the calls stand in different containers that only pass data on (stages).
    structure : int
        Equal for runs whose calls are equal inside up to sizes: the blocks of one stage and of the next,
        whatever stands between.
    """

    parent: Call | None
    calls: tuple[Call, ...]
    equal_sizes: bool
    sizes: tuple[tuple[Shape, ...], ...]
    chained: bool
    across: bool
    structure: int

    @property
    def class_name(self) -> str:
        """Class of the repeated module."""
        return self.calls[0].module.class_name


@rare_collections()
def repeats(trace: Trace) -> list[Repeat]:
    """Every run of equal neighbours, outer ones first, then in execution order.

    Neighbours are the calls made by one module call, calls without any op left out; and those of
    successive containers that do nothing but call their children.  Two calls are equal if class, inner
    calls and ops in order, and the wiring between them are; labels and sizes do not matter.  What their
    parent does itself after each of them must be the same too: ``up``, relu, ``down`` is no run.
    """
    structures = Structures(trace)
    types = [trace.ops[step].type for step in trace.call_steps]
    found: dict[tuple[int, ...], Repeat] = {}
    for parent in reversed(range(-1, len(trace.calls))):
        end = trace.calls[parent]._record.end_op if parent >= 0 else len(types)
        direct = [call for call in trace.child_calls(parent) if _count(call)]
        for siblings in (direct, list(_opened(trace, direct))):
            for run in _runs(siblings, structures.graph, types, end):
                key = tuple(call.index for call in run)
                if key not in found:
                    found[key] = _repeat(trace, trace.calls[parent] if parent >= 0 else None, run, structures)
    return sorted(found.values(), key=lambda r: (_level(r.parent), r.calls[0].index, -len(r.calls)))


def _runs(siblings: list[Call], graph: list[int], types: list[str], end: int) -> Iterator[list[Call]]:
    """Stretches of at least two neighbours with one number and the same ops after each."""
    start = 0
    while start < len(siblings):
        run = [siblings[start]]
        gap: list[str] | None = None
        for call in siblings[start + 1 :]:
            between = types[run[-1]._record.end_op : call._record.first_op]
            if graph[call.index] != graph[run[0].index] or (gap is not None and between != gap):
                break
            gap = between
            run.append(call)
        start += len(run)
        if gap:
            follower = siblings[start]._record.first_op if start < len(siblings) else end
            after = types[run[-1]._record.end_op : min(follower, run[-1]._record.end_op + len(gap))]
            if after != gap:
                run.pop()
                start -= len(run) > 1  # what ends one run may begin the next
        if len(run) > 1:
            yield run


def _opened(trace: Trace, siblings: list[Call]) -> Iterator[Call]:
    """The calls, with containers that run no op of their own replaced by what they call."""
    stack = siblings[::-1]
    while stack:
        call = stack.pop()
        inner = trace.child_calls(call.index)
        if inner and sum(_count(child) for child in inner) == _count(call):
            stack += [child for child in reversed(inner) if _count(child)]
        else:
            yield call


def _repeat(trace: Trace, parent: Call | None, run: list[Call], structures: Structures) -> Repeat:
    return Repeat(
        parent=parent,
        calls=tuple(run),
        equal_sizes=len({structures.sized[call.index] for call in run}) == 1,
        sizes=tuple(_returned(call) for call in run),
        chained=all(_feeds(trace, one, following) for one, following in itertools.pairwise(run)),
        across=len({call.parent.index if call.parent is not None else -1 for call in run}) > 1,
        structure=structures.graph[run[0].index],
    )


def _returned(call: Call) -> tuple[Shape, ...]:
    found = (record.facts for _, record in records_in(call._record.output))
    return tuple(fact.shape for fact in found if fact is not None)


def _feeds(trace: Trace, one: Call, following: Call) -> bool:
    """Whether anything in a call descends from what an earlier call made."""
    first, end = one._record.first_op, one._record.end_op
    reached = {op.step for op in trace.recorded_ops(first, end)}
    inside = following._record.first_op
    for index, op in enumerate(trace.recorded_ops(end, following._record.end_op), end):
        if any(edge.parent.step in reached for edge in op.inputs):
            if index >= inside:
                return True
            reached.add(op.step)
    return False


def _count(call: Call) -> int:
    return call._record.end_op - call._record.first_op


def _level(call: Call | None) -> int:
    level = 0
    while call is not None:
        level, call = level + 1, call.parent
    return level
