"""What has to run again after an edit: the calls that depend on it, and those on memory they write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from torchlens.capture.arguments import SCALARS
from torchlens.capture.recording import CallRecord, TensorRecord, records_in
from torchlens.interventions.memory import Key, Memory


@dataclass(slots=True)
class Affected:
    """The work of one replay.

    Attributes
    ----------
    changed : set of Key
        Edited sources and calls, and every call that depends on one.
    run : list of int
        Steps to execute, in order.
    bases : set of int
        Steps whose result stays as recorded but is needed on memory of its own.
    live : set of int
        Groups of memory that are replayed as a whole.
    """

    changed: set[Key]
    run: list[int] = field(default_factory=list)
    bases: set[int] = field(default_factory=set)
    live: set[int] = field(default_factory=set)


def affected_by(memory: Memory, edited: Iterable[Key]) -> Affected:
    """What depends on the edited sources and calls."""
    edited = set(edited)
    found = Affected(set(edited))
    sources = {key for key in edited if key[0] != "op"}
    steps = {index for source, index in edited if source == "op"}
    first = 0 if sources else min(steps, default=0) + 1
    dependent: set[int] = set()
    for step in range(first, len(memory.calls)):
        call = memory.calls[step]
        if depends_on(call, steps, sources) and not call.failed:
            dependent.add(step)
            steps.add(step)
    found.changed.update(("op", step) for step in dependent)
    edited_steps = {index for source, index in edited if source == "op"}
    run = dependent | _on_live_memory(memory, found, dependent, edited_steps, edited)
    found.bases = {step for step in run if step not in dependent and _is_base(memory, step, found.live)}
    found.run = sorted(run)
    return found


def depends_on(call: CallRecord, steps: set[int], sources: set[Key]) -> bool:
    """Whether a call reads something that changed: what those calls made, or those sources.

    An argument counts even where a later write replaced all of it: an edit may have put memory in its
    place that this write does not reach.
    """
    for value in call.args:
        if isinstance(value, TensorRecord):
            if value.index in steps and value.source == "op":
                return True
            if sources and (value.source, value.index) in sources:
                return True
        elif value.__class__ not in SCALARS and mentions(value, steps, sources):
            return True
    if call.kwargs and mentions(call.kwargs, steps, sources):
        return True
    return bool(call.writes_seen) and any(
        mentions(record, steps, sources) for _, record, _ in call.writes_seen
    )


def mentions(value: object, steps: set[int], sources: set[Key]) -> bool:
    """Whether a structure holds a record of something that changed."""
    if isinstance(value, TensorRecord):
        if value.source == "op":
            return value.index in steps
        return bool(sources) and (value.source, value.index) in sources
    items: Iterable[object] = ()
    if isinstance(value, (tuple, list)):
        items = value
    elif isinstance(value, dict):
        items = value.values()
    elif isinstance(value, slice):
        items = (value.start, value.stop, value.step)
    for item in items:  # noqa: SIM110 - called for every argument that is no plain tensor
        if mentions(item, steps, sources):
            return True
    return False


def _on_live_memory(
    memory: Memory, found: Affected, dependent: set[int], edited_steps: set[int], edited: set[Key]
) -> set[int]:
    """Steps of every call on memory that the replay writes to; marks that memory as live."""
    if not memory.written:
        return set()
    waiting = [*dependent, *edited_steps]
    for key in edited:
        if key[0] != "op":
            waiting += _open(memory, found, memory.groups(memory.of(key)))
    run: set[int] = set()
    visited: set[int] = set()
    while waiting:
        step = waiting.pop()
        if step in visited:
            continue
        visited.add(step)
        groups = memory.groups_of_call(step)
        waiting += _open(memory, found, groups)
    for group in found.live:
        run.update(step for step in memory.members.get(group, ()) if not memory.calls[step].failed)
    return run


def _open(memory: Memory, found: Affected, groups: Iterable[int]) -> list[int]:
    """Mark groups as live; the calls on them that were not known before."""
    steps: list[int] = []
    for group in groups:
        if group not in found.live:
            found.live.add(group)
            steps += memory.members.get(group, ())
    return steps


def _is_base(memory: Memory, step: int, live: set[int]) -> bool:
    """Whether a call only brings memory of a group into being, from nothing of that group."""
    call = memory.calls[step]
    if step in memory.targets or any(record.kept is None for record in call.outs):
        return False
    return not any(memory.group(record) in live for _, record in records_in((call.args, call.kwargs)))
