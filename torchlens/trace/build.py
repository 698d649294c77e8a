"""From the plain record to the graph: ops in order, edges, layers, labels."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from torchlens.analysis.recurrence import layers_of
from torchlens.capture.recording import CallRecord, Path, Recording, TensorRecord, records_in
from torchlens.trace.op import Kind, Layer, Op
from torchlens.trace.parts import Buffer, Call, Edge, Module, Param

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace

Dependency = tuple[Path, TensorRecord, bool]
"""Path of an argument, the record it depends on, and whether through an earlier in-place write."""


def dependencies(call: CallRecord) -> list[Dependency]:
    """What a call reads: its arguments' records, or the later writes that replaced their content."""
    direct = list(records_in((call.args, call.kwargs)))
    if not call.writes_seen:
        return [(path, record, False) for path, record in direct]
    replaced = {path for path, _, full in call.writes_seen if full}
    found = [(path, record, False) for path, record in direct if path not in replaced]
    found += [(path, record, True) for path, record, _ in call.writes_seen]
    return sorted(found, key=lambda item: [str(step) for step in item[0]])


class Builder:
    """Fills a trace from its recording."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.recording: Recording = trace.recording
        self._sources: dict[tuple[str, int], Op] = {}
        self._position: dict[int, int] = {}

    def build(self) -> None:
        """Make parts, ops, edges and layers, in this order."""
        self._parts()
        self._ops()
        self._layers()

    def _parts(self) -> None:
        trace, recording = self.trace, self.recording
        trace.params = [Param(trace, i, r) for i, r in enumerate(recording.params)]
        trace.buffers = [Buffer(trace, i, r) for i, r in enumerate(recording.buffers)]
        trace.modules = [Module(trace, i, r) for i, r in enumerate(recording.modules)]
        trace.calls = []
        for index, record in enumerate(recording.module_calls):
            module = trace.modules[record.module]
            call = Call(trace, index, record, module, len(module.calls) + 1)
            module.calls.append(call)
            trace.calls.append(call)

    def _add(
        self,
        kind: Kind,
        records: tuple[TensorRecord, ...],
        record: CallRecord | None = None,
        address: str = "",
    ) -> Op:
        op = Op(
            self.trace,
            step=len(self.trace.ops),
            kind=kind,
            records=records,
            record=record,
            address=address,
        )
        self.trace.ops.append(op)
        return op

    def _ops(self) -> None:
        trace, recording = self.trace, self.recording
        for index, item in enumerate(recording.inputs):
            self._sources["input", index] = self._add("input", (item.record,), address=item.address)
        for index, call in enumerate(recording.calls):
            needed = dependencies(call)
            for _, record, _ in needed:
                self._source(record)
            op = self._add("call", call.outs, call)
            trace.call_steps.append(op.step)
            self._sources["op", index] = op
            self._connect(op, needed)
        for item_out in recording.outputs:
            replaced = any(full for _, _, full in item_out.writes_seen)
            needed = [((), r, True) for _, r, _ in item_out.writes_seen]
            if not replaced:
                needed.insert(0, ((), item_out.record, False))
            for _, record, _ in needed:
                self._source(record)
            op = self._add("output", (item_out.record,), address=item_out.address)
            self._connect(op, needed)

    def _source(self, record: TensorRecord) -> Op | None:
        """The op that stands for a record's origin; buffers and constants come in at first use."""
        key = (record.source, record.index)
        op = self._sources.get(key)
        if op is None and record.source == "buffer":
            item = self.recording.buffers[record.index]
            op = self._sources[key] = self._add("buffer", (item.record,), address=item.addresses[0])
        elif op is None and record.source == "constant":
            constant = self.recording.constants[record.index]
            op = self._add("constant", (constant.record,), address=constant.address or "")
            self._sources[key] = op
        return op

    def _connect(self, op: Op, needed: list[Dependency]) -> None:
        edges = []
        for path, record, write in needed:
            parent = self._sources.get((record.source, record.index))
            if parent is not None and parent is not op:
                edge = Edge(parent, op, path, record.slot, write)
                edges.append(edge)
                parent.children_edges.append(edge)
        op.inputs = tuple(edges)

    def _layers(self) -> None:
        trace = self.trace
        steps = trace.call_steps
        index_of = {step: index for index, step in enumerate(steps)}
        parents = [
            [index_of[edge.parent.step] for edge in trace.ops[step].inputs if edge.parent.step in index_of]
            for step in steps
        ]
        recording = self.recording
        if recording.layers is None:
            derived = recording.derived
            recording.layers = layers_of(recording, parents) if derived is None else derived.layers
        groups = recording.layers
        members: dict[tuple[str, int], list[Op]] = {}
        for op in trace.ops:
            key = ("call", groups[index_of[op.step]]) if op.kind == "call" else (op.kind, op.step)
            members.setdefault(key, []).append(op)
        by_type: Counter[str] = Counter()
        number = 0
        for (kind, _), ops in members.items():
            first = ops[0]
            by_type[first.type if kind == "call" else f"<{kind}>"] += 1
            if kind == "call":
                number += 1
                label = f"{first.type}_{by_type[first.type]}_{number}"
            else:
                label = f"{kind}_{by_type[f'<{kind}>']}"
            layer = Layer(trace, label, ops)
            trace.layers.append(layer)
            for position, op in enumerate(ops, 1):
                op.layer, op.pass_index = layer, position
