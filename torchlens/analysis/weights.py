"""Which parts of which parameters and buffers a call touches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchlens.capture.recording import Recording, TensorFacts, TensorRecord, records_in
from torchlens.trace.op import facts

Region = tuple[Any, ...]
"""Storage, offset, shape and strides: slices of one stacked parameter are different weights."""


class WeightRegions:
    """The regions of parameters and buffers that each call reads or returns.

    Calls are to be asked in order: views of weights are known by following the calls that made them.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._storages: set[int] = set()
        held = [p.record for p in recording.params] + [b.record for b in recording.buffers]
        for record in held:
            known = facts(record)
            if known is not None and known.storage is not None:
                self._storages.add(known.storage)
        self._views: dict[tuple[int, int], Region] = {}

    def of(self, index: int) -> tuple[Region, ...]:
        """Regions that a call reads, then those that it returns."""
        call = self._recording.calls[index]
        read = [region for record in _tensors((call.args, call.kwargs)) if (region := self._region(record))]
        if not read:
            return ()
        for record in call.outs:
            known = facts(record)
            if known is not None and known.storage in self._storages:
                region = self._views[record.index, record.slot] = _region_of(known)
                read.append(region)
        return tuple(read)

    def _region(self, record: TensorRecord) -> Region | None:
        if record.source == "op":
            return self._views.get((record.index, record.slot))
        if record.source not in ("param", "buffer"):
            return None
        known = facts(record)
        return (record.source, record.index) if known is None else _region_of(known)


def _region_of(known: TensorFacts) -> Region:
    return (known.storage, known.offset, known.shape, known.strides)


def _tensors(value: Any) -> Iterator[TensorRecord]:
    for _, record in records_in(value):
        yield record
