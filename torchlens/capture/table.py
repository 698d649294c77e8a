"""The table of a model's modules, parameters and buffers, filled before the run and during it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import nn

from torchlens._torch_compat import UninitializedTensorMixin
from torchlens.capture.facts import facts_of
from torchlens.capture.modules import (
    Contents,
    contents,
    joined,
    module_record,
    registered,
    unregistered,
    walk,
)
from torchlens.capture.recorder import Recorder
from torchlens.capture.recording import BufferRecord, ConstantRecord, ParamRecord, TensorRecord


class ModuleTable:
    """Knows every module, parameter and buffer by identity, those that turn up late included."""

    def __init__(self, recorder: Recorder) -> None:
        self.objects: list[nn.Module] = []
        self._recorder = recorder
        self._recording = recorder.recording
        self.index: dict[int, int] = {}
        self._params: dict[int, int] = {}
        self._buffers: dict[int, int] = {}
        self._loose: dict[int, tuple[torch.Tensor, str]] = {}
        self._nameless: Counter[str] = Counter()
        self.buffer_slots: list[tuple[nn.Module, str, torch.Tensor]] = []
        self.lazy = False
        recorder.sources.unknown = self.unknown

    def add(self, roots: dict[str, nn.Module]) -> None:
        """Take in every module below the roots."""
        parents: list[tuple[int, Contents]] = []
        for address, module, known, held in walk(roots):
            seen = id(module) in self.index
            index = self._add_module(module, address, known=known)
            if held is not None and not seen:
                parents.append((index, held))
            self._add_tensors(module, address, index, held or contents(module))
        modules = self._recording.modules
        for index, held in reversed(parents):
            record = modules[index]
            record.holds_state = bool(record.params or record.buffers) or any(
                modules[self.index[id(child)]].holds_state
                for _, child in held.modules
                if id(child) in self.index
            )

    def _add_module(self, module: nn.Module, address: str, *, known: bool) -> int:
        index = self.index.get(id(module))
        if index is None:
            index = self.index[id(module)] = len(self.objects)
            self.objects.append(module)
            self._recording.modules.append(module_record(module, address, known=known))
        elif address not in self._recording.modules[index].addresses:
            self._recording.modules[index].addresses.append(address)
        return index

    def _add_tensors(self, module: nn.Module, address: str, index: int, held: Contents) -> None:
        record = self._recording.modules[index]
        for name, tensor in held.params:
            place = self._add_param(tensor, joined(address, name), known=record.registered)
            if place not in record.params:
                record.params.append(place)
        transient: set[str] = getattr(module, "_non_persistent_buffers_set", set()) if held.buffers else set()
        for name, tensor in held.buffers:
            self.buffer_slots.append((module, name, tensor))
            place = self._add_buffer(tensor, joined(address, name), persistent=name not in transient)
            if place not in record.buffers:
                record.buffers.append(place)
        for name, value in held.loose:
            if isinstance(value, torch.Tensor) and id(value) not in self._params:
                self._loose.setdefault(id(value), (value, joined(address, name)))

    def _add_param(self, tensor: torch.Tensor, address: str, *, known: bool) -> int:
        place = self._params.get(id(tensor))
        params = self._recording.params
        if place is not None:
            if address not in params[place].addresses:
                params[place].addresses.append(address)
            return place
        place = self._params[id(tensor)] = len(params)
        self.lazy = self.lazy or isinstance(tensor, UninitializedTensorMixin)
        record = self._recorder.source_record(tensor, "param", place)
        params.append(ParamRecord([address], tensor.requires_grad, known, record))
        return place

    def _add_buffer(self, tensor: torch.Tensor, address: str, *, persistent: bool) -> int:
        place = self._buffers.get(id(tensor))
        buffers = self._recording.buffers
        if place is not None:
            if address not in buffers[place].addresses:
                buffers[place].addresses.append(address)
            return place
        place = self._buffers[id(tensor)] = len(buffers)
        self.lazy = self.lazy or isinstance(tensor, UninitializedTensorMixin)
        record = self._recorder.source_record(tensor, "buffer", place)
        buffers.append(BufferRecord([address], persistent, record))
        return place

    def enter(self, module: nn.Module) -> int:
        """Index of a module that is being called, taken in now if it is new."""
        index = self.index.get(id(module))
        if index is not None:
            return index
        kind = type(module).__name__
        self._nameless[kind] += 1
        count = self._nameless[kind]
        name = f"<{kind}>" if count == 1 else f"<{kind} {count}>"
        self.add({name: module})
        index = self.index[id(module)]
        for record in self._recording.modules[index:]:
            record.registered = False
        return index

    def unknown(self, tensor: torch.Tensor) -> TensorRecord:
        """A record for a tensor met for the first time: late parameter, buffer, attribute, constant."""
        name, kind = self._locate(tensor)
        if isinstance(tensor, nn.Parameter) or kind == "_parameters":
            place = self._add_param(tensor, name or f"<parameter {len(self._params)}>", known=bool(name))
            return self._recording.params[place].record
        if name is not None and kind == "_buffers":
            return self._recording.buffers[self._add_buffer(tensor, name, persistent=True)].record
        if name is None:
            self._recorder.expose(tensor)
        index = len(self._recording.constants)
        record = self._recorder.source_record(tensor, "constant", index)
        reason = "an attribute of a module" if name else "made where no recorded call was seen"
        self._recording.constants.append(ConstantRecord(reason, name, record))
        return record

    def _locate(self, tensor: torch.Tensor) -> tuple[str | None, str]:
        """Address of a tensor that the modules running now hold, and in which of their dicts."""
        if id(tensor) in self._loose:
            return self._loose[id(tensor)][1], ""
        stack = self._recorder.stack
        for call in reversed(stack.open_calls() if stack is not None else []):
            index = stack.calls[call].module if stack is not None else 0
            module, address = self.objects[index], self._recording.modules[index].addresses[0]
            for kind in ("_parameters", "_buffers"):
                for name, value in registered(module, kind):
                    if value is tensor:
                        return joined(address, name), kind
            for name, value in unregistered(module):
                if value is tensor:
                    return joined(address, name), ""
        return None, ""

    def settle(self) -> None:
        """After the run: facts and values of parameters that were not there before it."""
        held: list[Any] = [*self._recording.params, *self._recording.buffers]
        for item in held:
            live = item.record.live()
            if item.facts is None and live is not None:
                try:
                    item.record.facts = facts_of(live)
                    item.record.kept, item.record.version = live.detach(), live._version
                except (RuntimeError, ValueError):
                    continue
