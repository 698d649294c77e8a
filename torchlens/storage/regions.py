"""Which bytes of which memory have to be stored so that every kept value can be read back.

Values are views.  Views of one storage that overlap are stored once, as the bytes that they cover; an
expanded tensor covers little.  A state that later writes replaced is stored as a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from torchlens._torch_compat import is_fake, is_transform_wrapper, storage_key
from torchlens.capture.recording import TensorRecord
from torchlens.capture.values import read
from torchlens.storage.names import STORED, name_of
from torchlens.storage.stored import StoredValue, View

ALIGNED = 16
"""Regions begin at multiples of this, so that every dtype's elements keep their alignment."""

SPARSE = 4
"""Views that cover less than one part in this many of their region are stored as copies instead."""

SMALL = 1 << 16
"""Smaller regions are stored as they are, however little of them is covered."""


class Region(NamedTuple):
    """Bytes to store: a stretch of live memory, or what ``make`` returns when its turn comes."""

    size: int
    storage: torch.UntypedStorage | None = None
    start: int = 0
    device: torch.device | None = None
    make: Callable[[], torch.Tensor] | None = None


def refusal(value: torch.Tensor) -> str | None:
    """Why a value cannot be stored, ``None`` if it can."""
    if is_transform_wrapper(value) or is_fake(value) or value.device.type == "meta":
        return "it has no content to store"
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        return f"a {type(value).__name__} is not stored in files"
    if value.is_nested:
        return "nested tensors are not stored in files"
    if value.layout != torch.strided:
        return f"{name_of(value.layout)} tensors are not stored in files"
    if value.is_quantized or name_of(value.dtype) not in STORED:
        return f"{name_of(value.dtype)} tensors are not stored in files"
    return None if storage_key(value) is not None else "it has no memory of its own"


@dataclass(slots=True)
class _Piece:
    """A view that waits for its region: bytes from ``start`` to ``end`` of its storage."""

    number: int
    tensor: torch.Tensor
    start: int
    end: int


@dataclass(slots=True)
class Regions:
    """Takes values in, then says which regions to store and where each value lies in them.

    ``whole`` stores all memory that a value stands on: calls like ``as_strided`` reach outside of the
    view that they are given.
    """

    whole: bool = False
    views: list[View | None] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    _numbers: dict[Any, int] = field(default_factory=dict)
    _pieces: dict[int, list[_Piece]] = field(default_factory=dict)

    def add_record(self, record: TensorRecord) -> int | str:
        """Number of a record's value, or why it has none."""
        kept, history = record.kept, record.history
        if kept is None:
            return record.lost or ""
        if isinstance(history, StoredValue):
            return self._stored(history)
        if history is not None and history.sealed:
            key = (id(history), record.stamp, *_geometry(kept))
            return refusal(kept) or self._copied(key, kept, lambda: _known(record))
        value = read(record)
        return (record.lost or "") if value is None else self.add(value)

    def add(self, value: torch.Tensor) -> int | str:
        """Number of a tensor's value, or why it has none."""
        reason = refusal(value)
        if reason is not None:
            return reason
        value = value.detach()
        if value.is_neg() or not value.numel():
            return self._copied((id(value), len(self.views)), value, lambda: value.resolve_neg())
        key = (storage_key(value), *_geometry(value))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.views)
            self.views.append(None)
            start, end = _span(value)
            self._pieces.setdefault(key[0], []).append(_Piece(number, value, start, end))
        return number

    def _copied(self, key: Any, sample: torch.Tensor, make: Callable[[], torch.Tensor]) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.views)
            self.views.append(None)
            self._store_copy(number, sample, make)
        return number

    def _stored(self, value: StoredValue) -> int:
        """A value that lies in another file: its region is copied as it is."""
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.views)
            source, old = value.values, value.view.region
            region = self._numbers.get((id(source), old))
            if region is None:
                region = self._numbers[id(source), old] = len(self.regions)
                self.regions.append(Region(source.regions[old].size, make=lambda: source.bytes_of(old)))
            self.views.append(value.view._replace(region=region))
        return number

    def _store_copy(self, number: int, sample: torch.Tensor, make: Callable[[], torch.Tensor]) -> None:
        """A region of its own: what the tensor holds once, in the order in which it holds it."""
        like = torch.empty_like(_once(sample), device="meta")
        strides = [0 if _repeated(n, s) else kept for n, s, kept in zip(*_sizes(sample), like.stride())]
        geometry = (name_of(sample.dtype), tuple(sample.shape), tuple(strides), 0)
        view = View(len(self.regions), *geometry, False, sample.device)
        self.views[number] = view
        size = like.numel() * like.element_size()
        self.regions.append(Region(size, make=lambda: torch.empty_like(_once(sample)).copy_(_once(make()))))

    def settle(self) -> None:
        """Give every view its region."""
        for pieces in self._pieces.values():
            pieces.sort(key=lambda piece: piece.start)
            for group in [pieces] if self.whole else _overlapping(pieces):
                self._store(group)
        self._pieces.clear()

    def _store(self, group: list[_Piece]) -> None:
        storage = group[0].tensor.untyped_storage()
        start = group[0].start // ALIGNED * ALIGNED
        end = max(piece.end for piece in group)
        if self.whole:
            start, end = 0, storage.nbytes()
        covered = sum(_once(piece.tensor).numel() * piece.tensor.element_size() for piece in group)
        if not self.whole and end - start > max(SMALL, SPARSE * covered):
            for piece in group:
                self._store_copy(piece.number, piece.tensor, lambda tensor=piece.tensor: tensor)  # type: ignore[misc]
            return
        for piece in group:
            tensor, offset = piece.tensor, (piece.start - start) // piece.tensor.element_size()
            geometry = (name_of(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()), offset)
            self.views[piece.number] = View(len(self.regions), *geometry, tensor.is_conj(), tensor.device)
        self.regions.append(Region(end - start, storage, start, group[0].tensor.device))


def _known(record: TensorRecord) -> torch.Tensor:
    value = read(record)
    assert value is not None
    return value


def _geometry(value: torch.Tensor) -> tuple[Any, ...]:
    offset, conj = value.storage_offset(), value.is_conj()
    return (offset, tuple(value.shape), tuple(value.stride()), value.dtype, conj)


def _sizes(value: torch.Tensor) -> tuple[torch.Size, tuple[int, ...]]:
    return value.shape, value.stride()


def _span(value: torch.Tensor) -> tuple[int, int]:
    """First byte of a value in its storage, and the one after its last."""
    start = int(value.storage_offset())
    last = start + sum((count - 1) * step for count, step in zip(*_sizes(value)))
    return start * value.element_size(), (last + 1) * value.element_size()


def _repeated(count: int, step: int) -> bool:
    return step == 0 and count > 1


def _once(value: torch.Tensor) -> torch.Tensor:
    """The part of a tensor that holds each element of an expanded dimension once."""
    if 0 not in value.stride():
        return value
    return value[tuple(slice(0, 1) if _repeated(n, s) else slice(None) for n, s in zip(*_sizes(value)))]


def _overlapping(pieces: list[_Piece]) -> list[list[_Piece]]:
    """Groups of pieces, sorted by start, whose bytes overlap."""
    groups: list[list[_Piece]] = []
    end = -1
    for piece in pieces:
        if piece.start >= end:
            groups.append([])
        groups[-1].append(piece)
        end = max(end, piece.end)
    return groups
