"""A recording with some of its values replaced; everything else is shared with the one it came from."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import torch

from torchlens._torch_compat import version_of
from torchlens.capture.arguments import filled, tensors_in
from torchlens.capture.recording import (
    CallRecord,
    ModuleCall,
    OutputRecord,
    Recording,
    TensorRecord,
)
from torchlens.interventions.affected import mentions
from torchlens.interventions.memory import Key, Memory, Restated, key_of, mapped

NOTE = "Durations are those of the run before the edits."


def shared(recording: Recording, *, name: str | None = None) -> Recording:
    """A recording that shares every record and value, with lists of its own for edits."""
    return dataclasses.replace(
        recording,
        name=name or recording.name,
        log=list(recording.log),
        edits=list(recording.edits),
        edited={position: list(steps) for position, steps in recording.edited.items()},
        notes=list(recording.notes),
        _calls=None,
    )


def rewritten(
    recording: Recording,
    *,
    memory: Memory,
    new: dict[int, TensorRecord],
    changed: set[Key],
    calls: dict[int, CallRecord],
    outputs: list[torch.Tensor | None],
) -> Recording:
    """The recording with new states in place of old ones (by identity of the old record).

    ``calls`` are those that are rewritten already.
    """

    def swap(record: TensorRecord) -> TensorRecord:
        if record is None or (record.source, record.index) not in changed:
            return record
        return new.get(id(record)) or new.get(id(memory.same(record)), record)

    found = shared(recording)
    log = list(recording.calls)
    for step, call in enumerate(log):
        if step in calls:
            log[step] = calls[step]
        elif ("op", step) in changed or call.writes_seen:
            log[step] = _call(call, swap)
    found.log, found._calls = list(log), log
    steps = {index for source, index in changed if source == "op"}
    sources = {key for key in changed if key[0] != "op"}
    found.module_calls = [
        _module_call(call, swap)
        if mentions(call.output, steps, sources) or mentions(call.inputs, steps, sources)
        else call
        for call in recording.module_calls
    ]
    for name in ("inputs", "buffers", "constants"):
        items = getattr(recording, name)
        if any(key_of(item.record) in changed for item in items):
            setattr(found, name, [dataclasses.replace(item, record=swap(item.record)) for item in items])
    found.reads = [
        dataclasses.replace(read, tensor=swap(read.tensor)) if key_of(read.tensor) in changed else read
        for read in recording.reads
    ]
    found.outputs = [_output(item, swap, value) for item, value in zip(recording.outputs, outputs)]
    found.output = _returned(recording, outputs)
    if recording.finite is not None:
        found.finite = {s: state for s, state in recording.finite.items() if ("op", s) not in changed}
    if NOTE not in found.notes:
        found.notes.append(NOTE)
    return found


def _module_call(call: ModuleCall, swap: Any) -> ModuleCall:
    return ModuleCall(
        call.module,
        call.parent,
        call.site,
        call.first_op,
        call.end_op,
        filled(call.inputs, swap),
        filled(call.output, swap),
        call.failed,
        call.opaque,
    )


def _call(call: CallRecord, swap: Any) -> CallRecord:
    out = call.out
    return CallRecord(
        call.func,
        call.name,
        mapped(call.args, swap),
        dict(filled(call.kwargs, swap)) if call.kwargs else call.kwargs,
        swap(out) if isinstance(out, TensorRecord) else filled(out, swap),
        tuple([swap(record) for record in call.outs]),
        *call[6:11],
        tuple([(path, swap(record), full) for path, record, full in call.writes_seen]),
        *call[12:],
    )


def _output(item: OutputRecord, swap: Any, value: torch.Tensor | None) -> OutputRecord:
    seen = tuple((path, swap(record), full) for path, record, full in item.writes_seen)
    record = swap(item.record)
    if value is not None and (seen or record is item.record):
        record = Restated(item.record, version_of(value))
        record.kept = value.detach()
    return dataclasses.replace(item, record=record, writes_seen=seen)


def _returned(recording: Recording, outputs: list[torch.Tensor | None]) -> Any:
    """What the model returned, in the same containers, with the new tensors."""
    if all(value is None for value in outputs):
        return recording.output
    tensors = dict(tensors_in(recording.output, "output"))
    pairs = ((tensors.get(item.address), new) for item, new in zip(recording.outputs, outputs))
    by_id = {id(old): new for old, new in pairs if old is not None and new is not None}
    return with_tensors(recording.output, by_id)


def with_tensors(value: Any, by_id: dict[int, torch.Tensor]) -> Any:
    """A structure with tensors replaced, by identity of the old one."""
    return _rebuilt(value, by_id, {})


def _rebuilt(value: Any, by_id: dict[int, torch.Tensor], done: dict[int, Any]) -> Any:
    """A structure with some tensors replaced; containers that hold none of them stay the same objects."""
    if isinstance(value, torch.Tensor):
        return by_id.get(id(value), value)
    if id(value) in done:
        return done[id(value)]
    done[id(value)] = value
    if isinstance(value, tuple):
        items = [_rebuilt(item, by_id, done) for item in value]
        if any(a is not b for a, b in zip(items, value)):
            done[id(value)] = tuple.__new__(type(value), items) if hasattr(value, "_fields") else tuple(items)
    elif isinstance(value, list):
        items = [_rebuilt(item, by_id, done) for item in value]
        if any(a is not b for a, b in zip(items, value)):
            done[id(value)] = items if type(value) is list else type(value)(items)
    elif isinstance(value, dict):
        pairs = {key: _rebuilt(item, by_id, done) for key, item in value.items()}
        if any(pairs[key] is not value[key] for key in pairs):
            fresh = copy.copy(value)
            for key, item in pairs.items():
                fresh[key] = item
            done[id(value)] = fresh
    elif _holds_fields(value):
        done[id(value)] = _rebuilt_object(value, by_id, done)
    return done[id(value)]


def _holds_fields(value: Any) -> bool:
    plain = isinstance(getattr(value, "__dict__", None), dict)
    return plain and not isinstance(value, (torch.nn.Module, type)) and not callable(value)


def _rebuilt_object(value: Any, by_id: dict[int, torch.Tensor], done: dict[int, Any]) -> Any:
    fields = {name: _rebuilt(item, by_id, done) for name, item in vars(value).items()}
    if all(fields[name] is item for name, item in vars(value).items()):
        return value
    fresh = copy.copy(value)
    vars(fresh).update(fields)
    return fresh
