"""Rerun: run a model again with a fork's edits made live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from torchlens.capture.arguments import as_call, named_arguments, tensors_in
from torchlens.capture.modules import modules_of_callable
from torchlens.capture.recording import EditRecord
from torchlens.capture.run import Options, record
from torchlens.errors import InterventionError
from torchlens.interventions.align import Place, places
from torchlens.interventions.apply import changed
from torchlens.interventions.live import LiveEdits, Wanted
from torchlens.interventions.rewrite import with_tensors
from torchlens.trace.trace import Trace

if TYPE_CHECKING:
    from torchlens.interventions.fork import Edit, Fork
    from torchlens.trace.op import Op


def rerun(fork: Fork, model: Callable[..., Any], inputs: Any, keywords: Any) -> tuple[Trace, list[Edit]]:
    """A trace of ``model`` with the edits of ``fork`` made live, and the edits as made there."""
    args, kwargs = as_call(model, inputs, keywords)
    edits = LiveEdits([_wanted(fork, edit) for edit in fork.live_edits])
    given = dict(
        named for name, value in named_arguments(model, args, kwargs) for named in tensors_in(value, name)
    )
    instead: dict[int, torch.Tensor] = {}
    buffers: list[tuple[torch.Tensor, torch.Tensor]] = []
    held = _buffers(model)
    for edit in fork.live_edits:
        for step, key, _ in edit.places:
            op = fork.ops[step]
            if key[0] == "op":
                continue
            tensor = given.get(op.address) if key[0] == "input" else held.get(op.address)
            if tensor is None:
                raise _absent(op)
            found = instead.get(id(tensor), tensor)
            with torch.no_grad():
                instead[id(tensor)] = changed(found, edit.action, op, 0, op.label)
            if key[0] == "buffer":
                buffers.append((tensor, instead[id(tensor)]))
    args, kwargs = with_tensors(args, instead), with_tensors(kwargs, instead)
    with _instead(buffers):
        recording, error = record(model, args, kwargs, name=fork.name, options=Options(edit=edits))
    if error is not None:
        raise error
    return _noted(Trace(recording), fork, edits)


def _wanted(fork: Fork, edit: Edit) -> Wanted:
    found: dict[Place, tuple[str, tuple[int, ...] | None]] = {}
    outputs = {step: chosen for step, key, chosen in edit.places if key[0] == "op"}
    for place, op in places(fork):
        if op.step in outputs:
            found[place] = (op.label, outputs[op.step])
    return Wanted(edit.site, edit.action, found)


def _noted(trace: Trace, fork: Fork, edits: LiveEdits) -> tuple[Trace, list[Edit]]:
    """The edits as they were made in the new run; one that was made nowhere is an error."""
    from torchlens.interventions.fork import Edit, note_edit

    made: list[Edit] = []
    at_address: dict[tuple[str, str], Op] = {
        (op.kind, op.address): op for op in trace.ops if op.kind in ("input", "buffer")
    }
    for edit, hits in zip(fork.live_edits, edits.hits):
        found = [(trace.recorded_ops(step, step + 1)[0], ("op", step), outs) for step, outs in hits.items()]
        for step, key, outs in edit.places:
            op = at_address.get((key[0], fork.ops[step].address))
            if op is not None:
                found.append((op, (key[0], op.records[0].index), outs))
        if not found:
            raise InterventionError(
                f"The edit {edit.action} at {edit.site} hit no op of the new run.",
                code="edit_site_no_match",
                remedy="Is it the same model? tl.diff(fork, tl.trace(model, x)) shows where they differ.",
            )
        labels = tuple(op.label for op, _, _ in found)
        record = EditRecord(str(edit.site), str(edit.action), "rerun", labels)
        note_edit(trace.recording, record, [op.step for op, _, _ in found])
        made.append(Edit(edit.site, edit.action, tuple((op.step, key, outs) for op, key, outs in found)))
    return trace, made


def _buffers(model: Callable[..., Any]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for name, module in modules_of_callable(model).items():
        for address, tensor in module.named_buffers(prefix=name, remove_duplicate=False):
            found.setdefault(address, tensor)
    return found


@contextmanager
def _instead(buffers: list[tuple[torch.Tensor, torch.Tensor]]) -> Iterator[None]:
    """Buffers on other memory for a while; the memory that traces refer to is not written."""
    before = [(tensor, tensor.data) for tensor, _ in buffers]
    try:
        for tensor, new in buffers:
            tensor.data = new
        yield
    finally:
        for tensor, old in before:
            tensor.data = old


def _absent(op: Op) -> InterventionError:
    if op.kind == "constant":
        return InterventionError(
            f"{op.label} is a constant made inside the model, which a rerun makes anew.",
            code="edit_constant_not_live",
            op=op.label,
            remedy="Edit the ops that read it instead.",
        )
    return InterventionError(
        f"The new run has no {op.kind} {op.address!r}, which an edit is about.",
        code="edit_site_no_match",
        op=op.label,
        remedy="Pass the same arguments, and the same model.",
    )
