"""What interventions changed: marks on the drawing, and the full record beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from torchlens.drawing.fold import Shape, Shown
from torchlens.drawing.marks import Mark
from torchlens.drawing.rows import counted
from torchlens.drawing.scene import Row
from torchlens.drawing.settings import Settings
from torchlens.drawing.themes import THEMES
from torchlens.trace.op import Op

if TYPE_CHECKING:
    from torchlens.capture.recording import EditRecord
    from torchlens.trace.trace import Trace


@dataclass(slots=True)
class Changes:
    """Ops by what happened to them.

    ``edited`` maps steps to whether the site is only inferred; ``changed`` maps steps to the largest
    absolute change; ``unclear`` says why nothing could be compared, if so.
    """

    edited: dict[int, bool] = field(default_factory=dict)
    changed: dict[int, float] = field(default_factory=dict)
    compared: int = 0
    unclear: str = ""


def changes(trace: Trace) -> Changes:
    """Compare a trace with the clean run that it came from."""
    found = Changes()
    labels = {op.label: op for op in trace.ops}
    for edit in trace.edits:
        for label in edit.labels:
            if label in labels:
                step = labels[label].step
                found.edited[step] = edit.inferred and found.edited.get(step, True)
    clean = trace.parent
    if clean is None:
        found.unclear = "The clean run is gone, so only the edits are marked."
    elif not _same_inputs(trace, clean):
        found.unclear = "The clean run had other inputs, so only the edits are marked."
    else:
        _compare(trace, clean, found)
    return found


def _same_inputs(trace: Trace, clean: Trace) -> bool:
    pairs = list(zip(trace.inputs, clean.inputs))
    if len(trace.inputs) != len(clean.inputs):
        return False
    return all(largest_change(a, b) == 0.0 for a, b in pairs)


def _compare(trace: Trace, clean: Trace, found: Changes) -> None:
    before = {op.label: op for op in clean.ops}
    for op in trace.ops:
        other = before.get(op.label)
        if other is None or op.step in found.edited:
            continue
        change = largest_change(op, other)
        if change is not None:
            found.compared += 1
            if change > 0:
                found.changed[op.step] = change


def largest_change(op: Op, other: Op) -> float | None:
    """Largest absolute difference of the outputs of two ops; ``None`` if they cannot be compared."""
    ours, theirs = _tensors(op.out), _tensors(other.out)
    if len(ours) != len(theirs) or not ours:
        return None
    largest = 0.0
    for a, b in zip(ours, theirs):
        if a.shape != b.shape:
            return None
        if a is not b and a.numel():
            largest = max(largest, _difference(a, b))
    return largest


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _difference(a: torch.Tensor, b: torch.Tensor) -> float:
    with torch.no_grad(), torch._C.DisableTorchFunction():
        if a.is_complex() or b.is_complex():
            gap = (a - b).abs()
        else:
            first, second = a.to(torch.float64), b.to(torch.float64)
            same = (first == second) | (first.isnan() & second.isnan())
            gap = (first - second).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
        return float(gap.max())


def change_marks(shape: Shape, settings: Settings) -> dict[Shown, Mark]:
    """Purple outlines for edited nodes, light purple ones with their largest change for the others."""
    found = changes(shape.graph.trace)
    theme = THEMES[settings["theme"]]
    marks: dict[Shown, Mark] = {}
    for node in shape.nodes:
        steps = [op.step for unit in node.units for op in unit.ops]
        edited = [found.edited[step] for step in steps if step in found.edited]
        moved = [found.changed[step] for step in steps if step in found.changed]
        if node.stub or not (edited or moved):
            continue
        role = theme.roles["edited" if edited else "changed"]
        look: dict[str, Any] = {"stroke": role.stroke, "stroke_width": role.width * theme.node_width}
        if edited:
            look["dashed"] = all(edited)
        text = (
            "edited" + (", inferred" if all(edited) else "")
            if edited
            else f"changed by up to {max(moved):.3g}"
        )
        marks[node] = Mark(look, [Row(text, "note")])
    return marks


def caption_lines(trace: Trace) -> list[str]:
    """How many ops were edited and changed, or why that is not known."""
    found = changes(trace)
    lines = [f"Edited: {counted(len(found.edited), 'op')} by {_edits(trace.edits)}."]
    if any(found.edited.values()):
        lines.append("Dashed outlines are inferred from the record, not confirmed by an op.")
    if found.unclear:
        return [*lines, found.unclear]
    moved = f"{len(found.changed)} of {found.compared} other values differ from the clean run"
    return [*lines, f"Changed: {moved}."]


def _edits(edits: Sequence[EditRecord]) -> str:
    shown = [f"{edit.action} at {edit.site}" for edit in edits[:3]]
    more = f" and {len(edits) - 3} more" if len(edits) > 3 else ""
    return ", ".join(shown) + more


def census_text(trace: Trace) -> str:
    """The full record: every edit with site, engine and ops, every mark, and how the run was captured."""
    found = changes(trace)
    lines = [trace.name, ""]
    for number, edit in enumerate(trace.edits, 1):
        lines.append(f"edit {number}: {edit.action} at {edit.site} ({edit.engine})")
        lines += [f"  {label}{' (inferred)' if edit.inferred else ''}" for label in edit.labels]
    lines += ["", f"changed ops: {len(found.changed)} of {found.compared} compared"]
    lines += [f"  {trace.ops[step].label}: {change:.6g}" for step, change in found.changed.items()]
    if found.unclear:
        lines.append(f"  {found.unclear}")
    return "\n".join([*lines, "", *_capture(trace)]) + "\n"


def _capture(trace: Trace) -> list[str]:
    kept = sum(op.out is not None for op in trace.ops)
    lines = [
        f"completed: {'yes' if trace.completed else 'no'}",
        f"values kept: {kept} of {len(trace.ops)}",
        f"shapes only: {'yes' if trace.recording.fake else 'no'}",
        f"timed runs: {trace.recording.timing.runs}, warm-ups: {trace.recording.timing.warmup}",
    ]
    return lines + [f"note: {note}" for note in trace.recording.notes]
