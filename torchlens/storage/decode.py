"""From plain JSON data back to a recording; nothing is believed that is not checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchlens.capture.context import CallContext, Cast, Generated
from torchlens.capture.recording import (
    Audit,
    BufferRecord,
    CallRecord,
    ConstantRecord,
    Derived,
    EditRecord,
    Failure,
    InputRecord,
    ModuleCall,
    ModuleRecord,
    OutputRecord,
    ParamRecord,
    ReadRecord,
    Recording,
    TensorRecord,
    Timing,
)
from torchlens.storage import functions, names
from torchlens.storage.checks import (
    BIGGEST,
    DamagedError,
    columns,
    flag,
    optional,
    place,
    row,
    rows,
    several,
    table,
    text,
    whole,
)
from torchlens.storage.encode import CALLS
from torchlens.storage.opaque import recorded_error
from torchlens.storage.places import read_sites
from torchlens.storage.records import check_sources, read_records, read_views
from torchlens.storage.stored import StoredValues, View
from torchlens.storage.templates import Reader

FINITE = ("finite", "nan", "+inf", "-inf", "mixed")
ENGINES = ("replay", "rerun", "capture")


class Decoder:
    """Reads one recording; tables first, since everything else refers to them."""

    def __init__(self, data: dict[str, Any], values: StoredValues) -> None:
        self.data = data
        self.values = values
        self.views = read_views(data.get("views"), values)
        self.records = read_records(data, views=self.views, values=values)
        self.templates = Reader(self.records)
        self.sites = read_sites(data)
        self.functions = [_read_function(one) for one in rows(data.get("functions"))]

    def recording(self) -> Recording:
        """The whole recording."""
        data = self.data
        made = Recording(name=text(data.get("name")), class_name=text(data.get("class_name")))
        made.fake, made.input_text = flag(data.get("fake")), text(data.get("input_text"))
        made.notes = several(data.get("notes"), text)
        self._parts(made)
        made.log = [self._call(one) for one in zip(*columns(table(data.get("calls")), CALLS))]
        made.module_calls = [self._module_call(i, one) for i, one in enumerate(rows(data["module_calls"]))]
        self._sources(made)
        self._run(made)
        made.reads = [self._read(one, made) for one in rows(data.get("reads"))]
        made.contexts = dict(self._context(one, made.log) for one in rows(data.get("contexts")))
        made.output = self._output(made)
        made.derived = _read_derived(table(data.get("derived")), len(made.log))
        return made

    def _get(self, name: str, read: Callable[[Any], Any]) -> list[Any]:
        return [read(one) for one in rows(self.data.get(name))]

    def _record(self, number: Any) -> TensorRecord:
        return self.records[place(number, self.records)]

    # -- the model -----------------------------------------------------------------------------

    def _parts(self, made: Recording) -> None:
        record = self._record
        made.modules = self._get("modules", lambda one: _read_module(table(one)))
        for a, trainable, registered, number in self._get("params", lambda one: row(one, 4)):
            made.params.append(ParamRecord(_addresses(a), flag(trainable), flag(registered), record(number)))
        for a, persistent, number in self._get("buffers", lambda one: row(one, 3)):
            made.buffers.append(BufferRecord(_addresses(a), flag(persistent), record(number)))
        for address, number in self._get("inputs", lambda one: row(one, 2)):
            made.inputs.append(InputRecord(text(address), record(number)))
        for address, number, seen in self._get("outputs", lambda one: row(one, 3)):
            made.outputs.append(OutputRecord(text(address), record(number), self._writes(seen)))
        for reason, address, number in self._get("constants", lambda one: row(one, 3)):
            made.constants.append(ConstantRecord(text(reason), optional(address, text), record(number)))
        for module in made.modules:
            for number in module.params:
                place(number, made.params)
            for number in module.buffers:
                place(number, made.buffers)

    def _sources(self, made: Recording) -> None:
        """Check what refers forward: modules of calls, sources of records."""
        for call in made.module_calls:
            place(call.module, made.modules)
            whole(call.end_op, call.first_op, len(made.log))
        for entry in made.log:
            whole(entry[9], -1, len(made.module_calls) - 1)
        lists: dict[str, list[Any]] = {
            "op": made.log,
            "input": made.inputs,
            "param": made.params,
            "buffer": made.buffers,
            "constant": made.constants,
        }
        counts = {name: len(held) for name, held in lists.items()}
        check_sources(self.records, counts, [len(entry[5]) for entry in made.log])

    # -- the run -------------------------------------------------------------------------------

    def _call(self, columns: tuple[Any, ...]) -> CallRecord:
        func, name, args, kwargs, out, outs, start, end, site, call, mutates, failed, writes = columns
        read = self.templates.read
        return CallRecord(
            func=self.functions[place(func, self.functions)],
            name=text(name),
            args=tuple([read(value) for value in rows(args)]),
            kwargs={text(key): read(value) for key, value in (row(pair, 2) for pair in rows(kwargs))},
            out=read(out),
            outs=tuple([self._record(number) for number in rows(outs)]),
            start=whole(start, -BIGGEST),
            end=whole(end, -BIGGEST),
            site=self.sites[place(site, self.sites)],
            call=call,
            mutates=bool(whole(mutates, 0, 1)),
            writes_seen=self._writes(writes),
            grad_fn=None,
            failed=bool(whole(failed, 0, 1)),
        )

    def _writes(self, value: Any) -> tuple[tuple[tuple[Any, ...], TensorRecord, bool], ...]:
        found = []
        for path, number, full in (row(one, 3) for one in rows(value)):
            steps = tuple(self.templates.read(step) for step in rows(path))
            found.append((steps, self._record(number), bool(whole(full, 0, 1))))
        return tuple(found)

    def _module_call(self, index: int, value: Any) -> ModuleCall:
        module, parent, site, first, end, inputs, output, failed, opaque = row(value, 9)
        return ModuleCall(
            module=whole(module),
            parent=whole(parent, -1, index - 1),
            site=self.sites[place(site, self.sites)],
            first_op=whole(first),
            end_op=whole(end),
            inputs=self.templates.read(inputs),
            output=self.templates.read(output),
            failed=flag(failed),
            opaque=flag(opaque),
        )

    def _run(self, made: Recording) -> None:
        data, calls = self.data, made.log
        made.timing = _read_timing(table(data.get("timing")), len(calls))
        made.audit = optional(data.get("audit"), _read_audit)
        made.saved = optional(data.get("saved"), lambda value: dict(_pairs(value, calls, _size)))
        made.finite = optional(data.get("finite"), lambda value: dict(_pairs(value, calls, _status)))
        made.failure = optional(data.get("failure"), lambda value: _read_failure(table(value), made))
        made.edits = self._get("edits", lambda one: _read_edit(table(one)))
        made.edited = dict(_pairs(data.get("edited"), made.edits, lambda steps: several(steps, whole)))

    def _read(self, value: Any, made: Recording) -> ReadRecord:
        kind, number, outcome, site, before, call = row(value, 6)
        return ReadRecord(
            text(kind),
            self._record(number),
            self.templates.read(outcome),
            self.sites[place(site, self.sites)],
            whole(before, 0, len(made.log)),
            whole(call, -1, len(made.module_calls) - 1),
        )

    # -- values beside the graph ---------------------------------------------------------------

    def _output(self, made: Recording) -> Any:
        """What the model returned; its tensors are read now, since the caller owns them."""
        found = Reader(_Output(self.values, self.views)).read(self.data.get("output"))
        changed = several(self.data.get("output_restored"), text)
        if changed:
            note = f"The output came from a file: {', '.join(changed)} came back as plain stand-ins."
            made.notes += [note] if note not in made.notes else []
        return found

    def _context(self, value: Any, calls: list[Any]) -> tuple[int, CallContext]:
        step, generated, casts = row(value, 3)
        states = []
        for device, number, given in (row(one, 3) for one in rows(generated)):
            if number is not None:
                state = _Output(self.values, self.views)[place(number, self.views)]
                states.append(Generated(text(device), state.clone(), flag(given)))
        held = [
            Cast(text(device), names.named(dtype, names.DTYPES))
            for device, dtype in (row(one, 2) for one in rows(casts))
        ]
        return place(step, calls), CallContext(tuple(states), tuple(held))


class _Output(Sequence[Any]):
    """The values of a file by number, read when asked for."""

    def __init__(self, values: StoredValues, views: list[View]) -> None:
        self._values = values
        self._views = views

    def __len__(self) -> int:
        return len(self._views)

    def __getitem__(self, number: Any) -> Any:
        return self._values.value(self._views[number])


def _read_function(value: Any) -> Any:
    if value is None:
        return None
    name, module, plain = row(value, 3)
    return functions.find(optional(name, text), optional(module, text), text(plain))


def _addresses(value: Any) -> list[str]:
    found = several(value, text)
    if not found:
        raise DamagedError("an address was expected")
    return found


def _read_module(value: dict[str, Any]) -> ModuleRecord:
    return ModuleRecord(
        addresses=_addresses(value.get("addresses")),
        class_name=text(value.get("class_name")),
        params=several(value.get("params"), whole),
        buffers=several(value.get("buffers"), whole),
        registered=flag(value.get("registered")),
        training=flag(value.get("training")),
        holds_state=flag(value.get("holds_state")),
        source_file=optional(value.get("source_file"), text),
        source_line=optional(value.get("source_line"), whole),
        extra=text(value.get("extra", "")),
    )


def _pairs(value: Any, keys: Sequence[Any], read: Callable[[Any], Any]) -> list[tuple[int, Any]]:
    return [(place(key, keys), read(item)) for key, item in (row(pair, 2) for pair in rows(value))]


def _size(value: Any) -> int | None:
    return optional(value, whole)


def _status(value: Any) -> str:
    if value not in FINITE:
        raise DamagedError("a state was expected")
    return text(value)


def _read_timing(value: dict[str, Any], calls: int) -> Timing:
    durations = [several(run, lambda n: whole(n, -BIGGEST)) for run in rows(value.get("durations"))]
    if any(len(run) != calls for run in durations):
        raise DamagedError("a duration for each call was expected")
    runs, warmup, kept = value.get("runs"), value.get("warmup"), value.get("values_kept")
    return Timing(whole(runs), whole(warmup), flag(kept), text(value.get("clock")), durations)


def _read_audit(value: Any) -> Audit:
    outside = {text(name): whole(count) for name, count in table(table(value).get("outside")).items()}
    return Audit(outside, whole(value.get("unknown_sources")), whole(value.get("changed_values", 0)))


def _read_failure(value: dict[str, Any], made: Recording) -> Failure:
    error = recorded_error(text(value.get("type")), text(value.get("message")))
    for note in several(value.get("notes"), text):
        if hasattr(error, "add_note"):
            error.add_note(note)
    op = optional(value.get("op"), lambda number: place(number, made.log))
    return Failure(error, op, several(value.get("calls"), lambda number: place(number, made.module_calls)))


def _read_edit(value: dict[str, Any]) -> EditRecord:
    if value.get("engine") not in ENGINES:
        raise DamagedError("an engine was expected")
    labels = tuple(several(value.get("labels"), text))
    engine = text(value["engine"])
    return EditRecord(
        text(value.get("site")), text(value.get("action")), engine, labels, flag(value["inferred"])
    )


def _read_derived(value: dict[str, Any], calls: int) -> Derived:
    layers = several(value.get("layers"), whole)
    work = [optional(one, _read_work) for one in rows(value.get("work"))]
    if len(layers) != calls or len(work) != calls:
        raise DamagedError("a layer for each call was expected")
    return Derived(layers, work, [_read_branch(row(one, 10)) for one in rows(value.get("branches"))])


def _read_work(value: Any) -> tuple[int, int]:
    macs, other = row(value, 2)
    return whole(macs), whole(other, -BIGGEST)


def _read_branch(value: list[Any]) -> tuple[Any, ...]:
    step, outcome, where, kind, test, holds, then_ops, else_ops, then_edges, else_edges = value
    return (
        optional(step, whole),
        flag(outcome),
        optional(where, _read_location),
        text(kind),
        text(test),
        optional(holds, flag),
        tuple(several(then_ops, whole)),
        tuple(several(else_ops, whole)),
        tuple(several(then_edges, _read_edge)),
        tuple(several(else_edges, _read_edge)),
    )


def _read_location(value: Any) -> tuple[str, int, str]:
    file, line, function = row(value, 3)
    return text(file), whole(line), text(function)


def _read_edge(value: Any) -> tuple[int, int]:
    child, number = row(value, 2)
    return whole(child), whole(number)
