"""From a trace to plain JSON data and the values that go with it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from torchlens.analysis.branch_rows import to_rows
from torchlens.analysis.finite import Statuses
from torchlens.capture.context import CallContext
from torchlens.capture.facts import facts_of
from torchlens.capture.recording import CallRecord, Failure, ModuleCall, Recording, TensorRecord
from torchlens.storage import functions, names
from torchlens.storage.places import PlaceWriter
from torchlens.storage.records import NO_VALUES, RecordWriter, written_view
from torchlens.storage.regions import Regions
from torchlens.storage.templates import Writer

if TYPE_CHECKING:
    import torch

    from torchlens.trace.trace import Trace

CALLS = ("func", "name", "args", "kwargs", "out", "outs", "start", "end", "site", "call", "mutates",
         "failed", "writes")  # fmt: skip


class Encoder:
    """Writes one trace; ``regions`` has its values afterwards, if they are wanted."""

    def __init__(self, trace: Trace, *, values: bool) -> None:
        self.trace = trace
        self.recording: Recording = trace.recording
        reaching = any(call.name.startswith("as_strided") for call in self.recording.calls)
        self.regions = Regions(whole=reaching) if values else None
        self.records = RecordWriter(Statuses(trace), self.regions)
        self.places = PlaceWriter()
        self.templates = Writer(self._record)
        self._functions: dict[int, int] = {}
        self._function_rows: list[Any] = []

    def data(self) -> dict[str, Any]:
        """Everything but the values."""
        found = {**self._parts(), **self._run(), **self._calls()}
        found["output"], found["output_restored"] = self._output()
        contexts = self.recording.contexts if self.regions is not None else {}
        found["contexts"] = [[step, *self._context(c)] for step, c in contexts.items()]
        found["derived"] = self._derived()
        found["functions"] = self._function_rows
        return {**found, **self.places.data(), **self.records.data(), "views": self._views()}

    def _views(self) -> list[Any]:
        if self.regions is None:
            return []
        self.regions.settle()
        return [written_view(view) for view in self.regions.views if view is not None]

    # -- the model -----------------------------------------------------------------------------

    def _parts(self) -> dict[str, Any]:
        recording, number = self.recording, self.records.number
        return {
            "modules": [asdict(module) for module in recording.modules],
            "params": [
                [item.addresses, item.trainable, item.registered, number(item.record)]
                for item in recording.params
            ],
            "buffers": [[i.addresses, i.persistent, number(i.record)] for i in recording.buffers],
            "inputs": [[item.address, number(item.record)] for item in recording.inputs],
            "outputs": [
                [item.address, number(item.record), self._writes(item.writes_seen)]
                for item in recording.outputs
            ],
            "constants": [[i.reason, i.address, number(i.record)] for i in recording.constants],
        }

    # -- the run -------------------------------------------------------------------------------

    def _run(self) -> dict[str, Any]:
        recording, write = self.recording, self.templates.write
        return {
            "name": recording.name,
            "class_name": recording.class_name,
            "fake": recording.fake,
            "input_text": recording.input_text,
            "notes": recording.notes,
            "timing": asdict(recording.timing),
            "audit": None if recording.audit is None else asdict(recording.audit),
            "saved": None if recording.saved is None else list(map(list, recording.saved.items())),
            "finite": None if recording.finite is None else list(map(list, recording.finite.items())),
            "failure": None if recording.failure is None else _failure(recording.failure),
            "edits": [{**edit.as_dict(), "inferred": edit.inferred} for edit in recording.edits],
            "edited": [[position, steps] for position, steps in recording.edited.items()],
            "module_calls": [self._module_call(call) for call in recording.module_calls],
            "reads": [
                [r.kind, self.records.number(r.tensor), write(r.outcome), self.places.number(r.site),
                 r.before_op, r.call]
                for r in recording.reads
            ],
        }  # fmt: skip

    def _module_call(self, call: ModuleCall) -> list[Any]:
        write = self.templates.write
        site = self.places.number(call.site)
        row = [call.module, call.parent, site, call.first_op, call.end_op]
        return [*row, write(call.inputs), write(call.output), call.failed, call.opaque]

    def _calls(self) -> dict[str, Any]:
        columns = zip(*map(self._call, self.recording.calls))
        found: dict[str, Any] = {name: [] for name in CALLS}
        found.update((name, list(column)) for name, column in zip(CALLS, columns))
        return {"calls": found}

    def _call(self, call: CallRecord) -> tuple[Any, ...]:
        write, number = self.templates.write, self.records.number
        return (
            self._function(call.func),
            call.name,
            [write(value) for value in call.args],
            [[name, write(value)] for name, value in call.kwargs.items()],
            write(call.out),
            [number(record) for record in call.outs],
            call.start,
            call.end,
            self.places.number(call.site),
            call.call,
            int(call.mutates),
            int(call.failed),
            self._writes(call.writes_seen),
        )

    def _writes(self, seen: tuple[Any, ...]) -> list[Any]:
        write = self.templates.write
        return [[list(map(write, path)), self.records.number(r), int(full)] for path, r, full in seen]

    def _function(self, function: Any) -> int:
        number = self._functions.get(id(function))
        if number is None:
            number = self._functions[id(function)] = len(self._function_rows)
            self._function_rows.append(functions.describe(function))
        return number

    def _record(self, value: Any) -> int | None:
        """Number of a record; a tensor that is hidden in a foreign container has none."""
        return self.records.number(value) if isinstance(value, TensorRecord) else None

    # -- values beside the graph ---------------------------------------------------------------

    def _tensor(self, value: torch.Tensor) -> int | str:
        """Number of a tensor's value, or what there is to say of it."""
        found = self.regions.add(value) if self.regions is not None else NO_VALUES
        if isinstance(found, int):
            return found
        return f"<tensor {facts_of(value).shape} {names.name_of(value.dtype)}, not in the file: {found}>"

    def _output(self) -> tuple[Any, list[str]]:
        """What the model returned, and the types in it that come back as plainer ones."""
        writer = Writer(self._tensor, objects=True)
        return writer.write(self.recording.output), sorted(writer.restored)

    def _context(self, context: CallContext) -> list[Any]:
        generated = [[one.device, self._tensor(one.state), one.given] for one in context.generated]
        return [generated, [[cast.device, names.name_of(cast.dtype)] for cast in context.casts]]

    # -- what only the code tells --------------------------------------------------------------

    def _derived(self) -> dict[str, Any]:
        trace = self.trace
        numbers = {id(layer): number for number, layer in enumerate(trace.layers)}
        ops = [trace.ops[step] for step in trace.call_steps]
        return {
            "layers": [numbers[id(op.layer)] for op in ops],
            "work": [
                None
                if op.flops is None or op.macs is None
                else [int(op.macs), int(op.flops) - 2 * int(op.macs)]
                for op in ops
            ],
            "branches": to_rows(trace.branches),
        }


def _failure(failure: Failure) -> dict[str, Any]:
    error = failure.exception
    return {
        "type": type(error).__name__,
        "message": _message(error),
        "notes": [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)],
        "op": failure.op,
        "calls": failure.calls,
    }


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # another's exception class, whatever its text does
        return ""
