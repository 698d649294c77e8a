"""Which parts of which parameters and buffers a call touches."""

from __future__ import annotations

from typing import Any

from torchlens.capture.facts import TensorFacts
from torchlens.capture.recording import Recording, TensorRecord, records_in

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
            if record.facts is not None and record.facts.storage is not None:
                self._storages.add(record.facts.storage)
        self._views: dict[tuple[int, int], Region] = {}

    def of(self, index: int) -> tuple[Region, ...]:
        """Regions that a call reads, then those that it returns."""
        call = self._recording.calls[index]
        touched: list[Region] = []
        for argument in call.args:
            self._collect(argument, touched)
        for argument in call.kwargs.values():
            self._collect(argument, touched)
        if not touched:
            return ()
        for record in call.outs:
            known = record.facts
            if known is not None and known.storage in self._storages:
                touched.append(_region_of(known))
                self._views[record.index, record.slot] = touched[-1]
        return tuple(touched)

    def _collect(self, argument: Any, into: list[Region]) -> None:
        if isinstance(argument, TensorRecord):
            region = self._region(argument)
            if region is not None:
                into.append(region)
        elif isinstance(argument, (tuple, list, dict, slice)):
            for _, record in records_in(argument):
                self._collect(record, into)

    def _region(self, record: TensorRecord) -> Region | None:
        if record.source == "op":
            return self._views.get((record.index, record.slot))
        if record.source not in ("param", "buffer"):
            return None
        known = record.facts
        return (record.source, record.index) if known is None else _region_of(known)


def _region_of(known: TensorFacts) -> Region:
    return (known.storage, known.offset, known.shape, known.strides)
