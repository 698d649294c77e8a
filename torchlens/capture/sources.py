"""Where a tensor comes from: the record that stands for its present state.

Tensors are known by identity first.  Where an object is new but its memory is not (``Parameter(y)``,
a ``torch.func`` wrapper, ``set_``), the memory or the autograd graph tells; a tensor that nothing
explains becomes a constant with a reason, never a silent gap.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from torchlens._torch_compat import (
    is_fake,
    is_transform_wrapper,
    no_torch_function,
    storage_guard,
    storage_key,
    transform_level,
    unwrap_transform,
    version_of,
)
from torchlens.capture.facts import facts_of
from torchlens.capture.recording import TensorRecord
from torchlens.capture.regions import Region, covers, overlap, region_of
from torchlens.capture.values import ValueStore

GRAPH_STEPS = 64
"""How far the autograd graph is followed from an unknown tensor to a known one."""

Write = tuple[int, Region | None, Region | None, TensorRecord]
Seen = tuple[TensorRecord, bool]


class Sources:
    """The present record of every tensor seen, by object, by memory and by autograd node."""

    def __init__(
        self,
        *,
        unknown: Callable[[torch.Tensor], TensorRecord],
        records: list[TensorRecord],
        values: ValueStore,
    ) -> None:
        self.known: dict[int, TensorRecord] = {}
        self.writes: dict[int, list[Write]] = {}
        self.unknown = unknown
        self.custom: Callable[[torch.Tensor], TensorRecord | None] = lambda tensor: None
        self._by_storage: dict[int, list[TensorRecord]] = {}
        self._by_node: dict[Any, TensorRecord] = {}
        self._values = values
        self._exposed: dict[int, tuple[int, int]] = {}
        self._same_memory: dict[int, int] = {}
        self._order = records
        self._indexed = 0
        self._held: list[Any] = []

    def alias(self, tensor: torch.Tensor, of: torch.Tensor) -> None:
        """``tensor`` is the same state as ``of`` (``.data``, ``as_subclass``)."""
        if tensor is not of:
            self.adopt(tensor, self.find(of))

    def adopt(self, tensor: torch.Tensor, record: TensorRecord) -> TensorRecord:
        """From now on ``tensor`` is known as the state that ``record`` stands for."""
        made = TensorRecord(
            record.source, record.index, record.slot, weakref.ref(tensor), None, version_of(tensor)
        )
        if is_transform_wrapper(tensor):
            made.kept, made.version, made.facts = record.kept, record.version, record.facts
            made.history, made.stamp, made.lost = record.history, record.stamp, record.lost
        elif record.kept is not None or record.lost is not None:
            self._values.keep(made, tensor)
        else:
            made.facts = facts_of(tensor)
        self.known[id(tensor)] = made
        self._order.append(made)
        return made

    def note_wrapped(self, tensor: torch.Tensor, record: TensorRecord) -> None:
        """Know the tensors inside a ``torch.func`` wrapper too: they come out when the transform ends."""
        while is_transform_wrapper(tensor):
            tensor = unwrap_transform(tensor)
            inner = TensorRecord(record.source, record.index, record.slot, weakref.ref(tensor), None, None)
            inner.facts = facts_of(tensor)
            self.known[id(tensor)] = inner
            self._order.append(inner)

    def expose(self, tensor: torch.Tensor) -> None:
        """Note where memory lies that may come back as another tensor (by numpy or dlpack)."""
        self._note_same_memory(tensor)
        key = self._key(tensor)
        if key is None or key in self._exposed:
            return
        self.watch(tensor)
        storage = tensor.untyped_storage()
        start = storage.data_ptr() if tensor.device.type == "cpu" and not is_fake(tensor) else 0
        self._exposed[key] = (start, start + storage.nbytes() if start else 0)

    def _key(self, tensor: torch.Tensor) -> int | None:
        """Identity of a tensor's memory, the same for all storages that lie on that memory."""
        key = storage_key(tensor)
        return self._same_memory.get(key, key) if key is not None else None

    def _region(self, tensor: torch.Tensor) -> Region | None:
        """Region within that memory; unknown where a storage begins inside another one."""
        return None if self._same_memory and storage_key(tensor) in self._same_memory else region_of(tensor)

    def hold(self, tensor: torch.Tensor) -> None:
        """Keep the identity of a tensor's memory from being given to another's, but not the memory."""
        guard = storage_guard(tensor)
        if guard is not None:
            self._held.append(guard)

    def watch(self, tensor: torch.Tensor) -> None:
        """Something about this memory changes: from now on it is not enough to know the object."""
        key = self._key(tensor)
        if key is not None and key not in self.writes:
            self.hold(tensor)
            self.writes[key] = []

    def renew(self, tensor: torch.Tensor) -> list[Seen]:
        """Later writes that the content depends on; if there are any, a record of the present state."""
        record = self.peek(tensor)
        writes = self.writes_since(tensor, record) if record is not None else []
        if record is not None and (writes or (self._exposed and self._key(tensor) in self._exposed)):
            self.adopt(tensor, record)
        return writes

    def peek(self, tensor: torch.Tensor) -> TensorRecord | None:
        """The record of this very object, if it has one."""
        record = self.known.get(id(tensor))
        if record is not None and record.stands_for(tensor):
            return record
        return None

    def find(self, tensor: torch.Tensor) -> TensorRecord:
        """The record that stands for ``tensor``, made up as a constant if nothing explains it."""
        record = self.known.get(id(tensor))
        if record is not None and record.stands_for(tensor):
            if record.version is None or version_of(tensor) == record.version:
                return record
            with no_torch_function():
                return self._after_change(tensor, record)
        with no_torch_function():
            found = self.in_memory(tensor) or self.custom(tensor) or self._by_graph(tensor)
        if found is None:
            found = self.unknown(tensor)
        return found if found.stands_for(tensor) else self.adopt(tensor, found)

    def _after_change(self, tensor: torch.Tensor, record: TensorRecord) -> TensorRecord:
        """The record of a tensor whose version moved on since its last one.

        Mostly another part of its memory was written.  If no recorded call did it, the tensor may have
        been given the memory of another one: that one's versions, which it does not share, stand still.
        """
        self._index()
        key, mine = self._key(tensor), self._region(tensor)
        if key is not None and not self.writes.get(key):
            for other in reversed(self._by_storage.get(key, [])):
                live = other.live()
                if (
                    live is None
                    or live is tensor
                    or (other.source, other.index) == (record.source, record.index)
                ):
                    continue
                still = version_of(live) == other.version != version_of(tensor)
                if still and overlap(self._region(live), mine):
                    record.lose("its tensor was given other memory by a call that cannot be seen")
                    return self.adopt(tensor, other)
        return self.adopt(tensor, record)

    def explains(self, tensor: torch.Tensor) -> bool:
        """Whether something known stands behind a tensor."""
        if self.peek(tensor) is not None:
            return True
        with no_torch_function():
            return (self.in_memory(tensor) or self._by_graph(tensor)) is not None

    def in_memory(self, tensor: torch.Tensor) -> TensorRecord | None:
        """The record of this object, of the tensor inside a wrapper, or of the memory that it lies on."""
        record = self.peek(tensor)
        if record is not None:
            return record
        if transform_level() is not None or is_transform_wrapper(tensor):
            inner = tensor
            while is_transform_wrapper(inner):
                inner = unwrap_transform(inner)
                known = self.peek(inner)
                if known is not None:
                    return known
            tensor = inner
        self._index()
        self._note_same_memory(tensor)
        key, mine = self._key(tensor), self._region(tensor)
        for record in reversed(self._by_storage.get(key, []) if key is not None else []):
            live = record.live()
            if live is None or overlap(self._region(live), mine):
                return record
        return None

    def _note_same_memory(self, tensor: torch.Tensor) -> None:
        """A tensor that numpy or dlpack made of known memory has a storage of its own there."""
        key = storage_key(tensor) if self._exposed else None
        if key is None or key in self._exposed or tensor.device.type != "cpu" or is_fake(tensor):
            return
        place = tensor.untyped_storage().data_ptr()
        for known, (start, stop) in self._exposed.items():
            if start <= place < stop:
                self._same_memory[key] = known
                self._values.expose(tensor)
                self.hold(tensor)
                return

    def _index(self) -> None:
        """Note memory and autograd node of the tensors registered since the last unknown one."""
        for record in self._order[self._indexed :]:
            live = record.live()
            tensor = live if live is not None else record.kept
            if live is None and record.settled is not None:
                key = record.settled.storage
            else:
                key = self._key(tensor) if tensor is not None else None
            if key is not None:
                self._by_storage.setdefault(key, []).append(record)
            if live is not None and live.grad_fn is not None:
                self._by_node[live.grad_fn] = record
        self._indexed = len(self._order)

    def _by_graph(self, tensor: torch.Tensor) -> TensorRecord | None:
        """The nearest known tensor behind an unknown one in the autograd graph."""
        queue = [tensor.grad_fn] if tensor.grad_fn is not None else []
        for _ in range(GRAPH_STEPS):
            if not queue:
                return None
            node = queue.pop(0)
            if node in self._by_node:
                return self._by_node[node]
            variable = getattr(node, "variable", None)
            if variable is not None:
                known = self.peek(variable)
                if known is not None and known.source != "param":
                    return known
            queue.extend(following for following, _ in node.next_functions if following is not None)
        return None

    def wrote(self, tensor: torch.Tensor, region: Region | None, step: int, record: TensorRecord) -> None:
        """A call wrote ``region`` of the memory of ``tensor``; the result is ``record``."""
        key = self._key(tensor)
        if key is not None:
            if key not in self.writes:
                self.hold(tensor)
            known = storage_key(tensor) == key
            entry = (step, region if known else None, self._region(tensor), record)
            self.writes.setdefault(key, []).append(entry)

    def writes_since(self, tensor: torch.Tensor, record: TensorRecord) -> list[Seen]:
        """Later writes through other aliases that the content of ``tensor`` depends on.

        Newest first, up to one that replaced everything; the flag says that this write did.
        """
        key = self._key(tensor)
        writes = self.writes.get(key) if key is not None else None
        if not writes:
            return []
        since = record.index if record.source == "op" else -1
        mine = self._region(tensor)
        found: list[Seen] = []
        for step, region, result, written in reversed(writes):
            if step <= since:
                break
            if overlap(region, mine):
                full = covers(result, mine)
                found.append((written, full))
                if full:
                    break
        return found
