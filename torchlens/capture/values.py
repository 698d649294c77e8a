"""Keeping values by reference, and keeping them right when memory is written again.

A kept value shares memory with the model's own tensor, so keeping costs no copy.  Just before a call
writes to that memory, the old content is put aside: all of it if the write may touch all, or only the
part that the write names.  The parts form a tape per storage, over which earlier states are read back.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import torch

from torchlens._torch_compat import no_torch_function, storage_key, version_of
from torchlens.capture.facts import facts_of
from torchlens.capture.recording import TensorRecord
from torchlens.capture.regions import Region, overlap, region_of
from torchlens.capture.writers import WHOLE

PARTIAL_SHARE = 4
"""A write to less than one part in this many of a storage is put aside as a part."""


class History:
    """The past contents of one storage: a tape of the parts that writes replaced, in order.

    Reading moves a cursor over the tape and swaps one part a step, so that a sweep over all states
    costs as much as the writes did.
    """

    status: str | None = None

    def __init__(self, sample: torch.Tensor) -> None:
        self.storage = sample.untyped_storage()
        self.tape: list[tuple[torch.Tensor, Any, torch.Tensor]] = []
        self.sealed = False
        self.cursor = 0

    def put_aside(self, target: torch.Tensor, index: Any) -> None:
        """Remember the content of ``target[index]``, which is about to be replaced."""
        alias, place = target.detach(), _frozen_index(index)
        self.tape.append((alias, place, alias[place].clone()))

    def seal(self) -> None:
        """Move to a private copy of the content, safe from anything that is written later."""
        if self.sealed:
            return
        self.storage = self.storage.clone()
        self.tape = [(_over(self.storage, alias), place, part) for alias, place, part in self.tape]
        self.cursor = len(self.tape)
        self.sealed = True

    def read(self, kept: torch.Tensor, stamp: int) -> torch.Tensor:
        """``kept`` as it was after the first ``stamp`` writes of the tape; a copy."""
        while self.cursor > stamp:
            self.cursor -= 1
            self._swap(self.cursor)
        while self.cursor < stamp:
            self._swap(self.cursor)
            self.cursor += 1
        if _repeats(kept):
            return _over(self.storage.clone(), kept)
        return _over(self.storage, kept).clone()

    def _swap(self, position: int) -> None:
        target, place, part = self.tape[position]
        current = target[place].clone()
        target[place] = part
        self.tape[position] = (target, place, current)


def _over(storage: torch.UntypedStorage, like: torch.Tensor) -> torch.Tensor:
    """A tensor of the geometry of ``like`` on other memory."""
    fresh = torch.empty(0, dtype=like.dtype, device=like.device)
    fresh.set_(storage, int(like.storage_offset()), like.size(), like.stride())
    return fresh.conj() if like.is_conj() else fresh


def _frozen_index(index: Any) -> Any:
    """An index that later writes to its own tensors (a position counter, say) do not move."""
    if index is WHOLE:
        return ...
    if isinstance(index, torch.Tensor):
        return index.detach().clone()
    if isinstance(index, (tuple, list)):
        return type(index)(_frozen_index(item) for item in index)
    if isinstance(index, slice):
        return slice(_frozen_index(index.start), _frozen_index(index.stop), _frozen_index(index.step))
    return index


def _repeats(tensor: torch.Tensor) -> bool:
    return any(step == 0 and count > 1 for count, step in zip(tensor.size(), tensor.stride()))


class ValueStore:
    """Knows which kept values share which memory, and guards them before each write."""

    def __init__(self, records: list[TensorRecord]) -> None:
        self._records = records
        self._indexed = 0
        self._by_storage: dict[int, list[TensorRecord]] = {}
        self._histories: dict[int, History] = {}
        self._written: set[int] = set()
        self._exposed: set[int] = set()

    def _index(self) -> None:
        """Sort the records kept since the last write by storage; each is looked at once."""
        for record in self._records[self._indexed :]:
            key = None if record.kept is None else storage_key(record.kept)
            if key is not None:
                history = self._histories.get(key)
                if history is not None:
                    record.history, record.stamp = history, len(history.tape)
                self._by_storage.setdefault(key, []).append(record)
        self._indexed = len(self._records)

    def keep(self, record: TensorRecord, tensor: torch.Tensor) -> None:
        """Keep the content of a tensor in its record: by reference, or copied if it may change unseen."""
        if self._exposed and storage_key(tensor) in self._exposed:
            record.facts = facts_of(tensor)
            record.kept = tensor.detach().clone()
            record.version = version_of(record.kept)
        else:
            record.kept = tensor.detach()

    def expose(self, tensor: torch.Tensor) -> None:
        """The memory of a tensor may be written unseen from now on: copy what is kept of it."""
        key = storage_key(tensor)
        if key is not None and key not in self._exposed:
            self.before_write(tensor, WHOLE, None)
            self._exposed.add(key)

    def freeze(self, tensor: torch.Tensor) -> None:
        """Keep what is known of a tensor object apart from it: its sizes or its memory will change."""
        self._index()
        key = storage_key(tensor)
        if key is None:
            return
        self._written.add(key)
        for record in self._by_storage.get(key, ()):
            if record.kept is tensor:
                record.freeze()

    def before_write(self, tensor: torch.Tensor, index: Any, written: Region | None) -> None:
        """Put the content aside that a write to ``tensor[index]`` is about to replace."""
        self._index()
        key = storage_key(tensor)
        records = self._by_storage.get(key) if key is not None else None
        if not records or key is None:
            return
        if key not in self._written:
            records = self._by_storage[key] = _unchanged(records)
            self._written.add(key)
        extent = tensor.untyped_storage().nbytes()
        small = written is not None and (written.stop - written.start) * PARTIAL_SHARE <= extent
        if small and _plain(tensor):
            self._open_history(key, tensor, records).put_aside(tensor, index)
        elif key in self._histories:
            self._histories.pop(key).seal()
            self._by_storage[key] = []
        else:
            self._by_storage[key] = _move_endangered(records, written)

    def _open_history(self, key: int, tensor: torch.Tensor, records: list[TensorRecord]) -> History:
        history = self._histories.get(key)
        if history is None:
            history = self._histories[key] = History(tensor)
            for record in records:
                record.history = history
        return history

    def lose(self, tensor: torch.Tensor, reason: str) -> None:
        """Mark every kept value on a tensor's memory as overwritten by something unforeseen."""
        self._index()
        key = storage_key(tensor)
        if key is None:
            return
        for record in self._by_storage.pop(key, ()):
            record.settle_facts()
            record.freeze()
            record.lose(reason)
        self._histories.pop(key, None)

    def seal(self) -> None:
        """End of the run: cut histories off from the model's memory, settle expected versions."""
        if not self._written:
            return
        self._index()
        for history in self._histories.values():
            history.seal()
        for key in self._written:
            for record in self._by_storage.get(key, ()):
                if record.kept is not None:
                    record.version = version_of(record.kept)


def _unchanged(records: list[TensorRecord]) -> list[TensorRecord]:
    """The records of a memory that nothing has written yet; others have lost their values."""
    for record in records:
        known = record.kept is not None and record.version is not None
        if known and record.kept is not None and version_of(record.kept) != record.version:
            record.settle_facts()
            record.freeze()
            record.lose("overwritten by a call that cannot be seen")
    return [record for record in records if record.lost is None]


def _move_endangered(records: list[TensorRecord], written: Region | None) -> list[TensorRecord]:
    """Move the values that a write touches to one copy of their storage; the others are returned."""
    endangered: list[TensorRecord] = []
    safe: list[TensorRecord] = []
    for record in records:
        if record.kept is not None:
            (endangered if overlap(region_of(record.kept), written) else safe).append(record)
    if endangered and endangered[0].kept is not None:
        copy = endangered[0].kept.untyped_storage().clone()
        for record in endangered:
            kept = record.kept
            assert kept is not None
            record.settle_facts()
            record.weak = record.weak or ref(kept)
            record.kept = _over(copy, kept) if _plain(kept) else kept.clone()
            record.version = version_of(record.kept)
    return safe


def _plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is its storage, offset, sizes and strides and nothing more."""
    return type(tensor) is torch.Tensor and not tensor.is_quantized and not tensor.is_neg()


def read(record: TensorRecord) -> torch.Tensor | None:
    """The value of a record as it was then, or ``None`` if not kept or lost."""
    kept, history = record.kept, record.history
    if kept is None:
        return None
    with no_torch_function(), torch.no_grad():
        if history is not None and history.sealed:
            return history.read(kept, record.stamp)
        if record.version is not None and version_of(kept) != record.version:
            record.lost = "its memory was written after the run"
            return None
    return kept.detach() if kept.requires_grad else kept
