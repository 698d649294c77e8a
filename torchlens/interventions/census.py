"""The census: the complete record of edits and changes as text, written beside a figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlens.interventions.changes import Changes, changes

if TYPE_CHECKING:
    from torchlens.capture.recording import EditRecord
    from torchlens.trace.trace import Trace


def census_text(trace: Trace, marks: Changes | None = None) -> str:
    """Every edit with site, action, engine and ops, every mark, and how the run was captured.

    Parameters
    ----------
    trace : Trace
    marks : Changes, optional
        What the figure marks; compared anew if not given.
    """
    found = changes(trace) if marks is None else marks
    sections = [list(_edits(trace)), list(_marks(trace, found)), list(_capture(trace))]
    return "\n\n".join("\n".join(lines) for lines in [[trace.name], *sections]) + "\n"


def _edits(trace: Trace) -> Iterator[str]:
    yield f"Edits: {len(trace.edits)}"
    labels = {op.label for op in trace.ops}
    for number, edit in enumerate(trace.edits, 1):
        yield f"edit {number}: {edit.action} at {edit.site} ({edit.engine})"
        yield from (f"  {_hit(edit, label, labels)}" for label in edit.labels)


def _hit(edit: EditRecord, label: str, labels: set[str]) -> str:
    if label not in labels:
        return f"{label} (inferred, the trace has no such op)"
    return f"{label} (inferred)" if edit.inferred else label


def _marks(trace: Trace, found: Changes) -> Iterator[str]:
    yield f"Marked as edited: {len(found.edited)}"
    for step, inferred in found.edited.items():
        yield f"  {trace.ops[step].label}: {'dashed, inferred' if inferred else 'solid, recorded'}"
    if found.unclear:
        yield found.unclear
        return
    yield f"Marked as changed: {len(found.changed)} of {found.compared} compared, largest absolute change"
    yield from (f"  {trace.ops[step].label}: {change:.6g}" for step, change in found.changed.items())
    if found.unknown:
        yield f"Not comparable, values not kept in both: {len(found.unknown)}"
        yield from (f"  {trace.ops[step].label}" for step in found.unknown)


def _capture(trace: Trace) -> Iterator[str]:
    recording = trace.recording
    calls = [op for op in trace.ops if op.kind == "call"]
    kept = sum(all(record.kept is not None for record in op.records) for op in calls)
    yield "Capture"
    yield f"completed: {'yes' if trace.completed else 'no'}"
    yield f"inputs: {recording.input_text or 'none'}"
    yield f"values kept: {kept} of {len(calls)} calls"
    yield f"shapes only: {'yes' if recording.fake else 'no'}"
    yield f"timed runs: {recording.timing.runs}, warm-ups: {recording.timing.warmup}"
    yield from (f"note: {note}" for note in recording.notes)
