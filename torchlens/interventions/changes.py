"""What the edits of a trace did: edited ops, and every other op whose value differs from the clean run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from torchlens.interventions.align import align
from torchlens.interventions.compare import largest_change

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.trace import Trace


@dataclass(slots=True)
class Changes:
    """Ops by what happened to them.

    Attributes
    ----------
    edited : dict
        Steps of the edited ops, with whether they are only inferred.
    changed : dict
        Steps of the other ops that differ, with the largest absolute change.
    compared : int
        Number of other ops that could be compared.
    unknown : list of int
        Steps that could not be compared, since a value is not kept on one side.
    unclear : str
        Why nothing could be compared, if so.
    """

    edited: dict[int, bool] = field(default_factory=dict)
    changed: dict[int, float] = field(default_factory=dict)
    compared: int = 0
    unknown: list[int] = field(default_factory=list)
    unclear: str = ""


_KNOWN: WeakKeyDictionary[Trace, tuple[tuple[object, ...], Changes]] = WeakKeyDictionary()
"""The last comparison of each trace and what it holds for; neither keeps a clean run alive."""


def changes(trace: Trace) -> Changes:
    """Compare a trace with the clean run that it came from, op by op and by value."""
    clean = trace.parent
    key = (*_state(trace), *(_state(clean) if clean is not None else ()))
    known = _KNOWN.get(trace)
    if known is None or known[0] != key:
        known = _KNOWN[trace] = (key, _changes(trace))
    return known[1]


def _state(trace: Trace) -> tuple[object, ...]:
    return id(trace), id(trace.recording), len(trace.edits), tuple(edit.inferred for edit in trace.edits)


def _changes(trace: Trace) -> Changes:
    found = Changes(edited=edited(trace))
    clean = trace.parent
    if clean is None:
        found.unclear = "The clean run is gone, so only the edits are marked."
    elif not trace.compares_inputs and not _same_inputs(trace, clean, found):
        found.unclear = "The clean run had other inputs, so only the edits are marked."
    else:
        for op, other in align(trace, clean).pairs:
            _compare(op, other, found)
        if not found.compared and not found.changed:
            found.unclear = "Values were not kept, so only the edits are marked."
    return found


def edited(trace: Trace) -> dict[int, bool]:
    """Steps of the ops that edits hit; true where only the record says so."""
    by_label = {op.label: op.step for op in trace.ops}
    found: dict[int, bool] = {}
    for edit in trace.edits:
        for label in edit.labels:
            step = by_label.get(label)
            if step is not None:
                found[step] = found.get(step, True) and edit.inferred
    return found


def _same_inputs(trace: Trace, clean: Trace, found: Changes) -> bool:
    if len(trace.inputs) != len(clean.inputs):
        return False
    pairs = [pair for pair in zip(trace.inputs, clean.inputs) if pair[0].step not in found.edited]
    return all(op.shapes == other.shapes and not largest_change(op, other) for op, other in pairs)


def _compare(op: Op, other: Op, found: Changes) -> None:
    if op.step in found.edited or not op.records:
        return
    change = largest_change(op, other)
    if change is None:
        found.unknown.append(op.step)
        return
    found.compared += 1
    if change > 0:
        found.changed[op.step] = change
