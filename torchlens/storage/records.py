"""The table of tensor states of a trace: numbered while writing, checked and rebuilt while reading."""

from __future__ import annotations

from typing import Any, get_args

from torchlens.analysis.finite import Statuses
from torchlens.capture.facts import TensorFacts
from torchlens.capture.recording import SourceKind, TensorRecord
from torchlens.storage import names
from torchlens.storage.checks import (
    BIGGEST,
    DamagedError,
    chosen,
    columns,
    optional,
    place,
    row,
    rows,
    several,
    table,
    text,
    whole,
)
from torchlens.storage.regions import Regions
from torchlens.storage.stored import PLACEHOLDER, StoredValue, StoredValues, View

SOURCES: tuple[SourceKind, ...] = get_args(SourceKind)
STATUSES = (None, "finite", "nan", "+inf", "-inf", "mixed")
COLUMNS = ("source", "index", "slot", "facts", "storage", "value", "status", "lost")
MOST_DIMS = 64
NO_VALUES = "the trace was saved without values"


class RecordWriter:
    """Numbers tensor states as they are met, and notes what is known of each.

    ``regions`` is ``None`` where values are left out.
    """

    def __init__(self, statuses: Statuses, regions: Regions | None) -> None:
        self._statuses = statuses
        self._regions = regions
        self._numbers: dict[int, int] = {}
        self._facts: dict[Any, int] = {}
        self._storages: dict[int | None, int] = {None: 0}
        self._columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self._held: list[TensorRecord] = []

    def number(self, record: TensorRecord) -> int:
        """Number of a record."""
        found = self._numbers.get(id(record))
        if found is None:
            found = self._numbers[id(record)] = len(self._held)
            self._held.append(record)
            self._add(record)
        return found

    def _add(self, record: TensorRecord) -> None:
        facts, value, lost = record.facts, None, record.lost
        if self._regions is not None:
            numbered = self._regions.add_record(record)
            value, lost = (numbered, None) if isinstance(numbered, int) else (None, numbered or None)
        elif record.kept is not None:
            lost = NO_VALUES
        row = (
            SOURCES.index(record.source),
            record.index,
            record.slot,
            self._facts_number(facts),
            self._storages.setdefault(facts.storage, len(self._storages)) if facts is not None else 0,
            value,
            STATUSES.index(self._statuses.of_record(record)),
            lost,
        )
        for column, item in zip(self._columns.values(), row):
            column.append(item)

    def _facts_number(self, facts: TensorFacts | None) -> int | None:
        if facts is None:
            return None
        return self._facts.setdefault(facts._replace(storage=None), len(self._facts))

    def data(self) -> dict[str, Any]:
        """Both tables."""
        return {"facts": [_written_facts(facts) for facts in self._facts], "records": self._columns}


def _written_facts(facts: TensorFacts) -> list[Any]:
    return [
        list(facts.shape),
        names.name_of(facts.dtype),
        str(facts.device),
        facts.nbytes,
        None if facts.strides is None else list(facts.strides),
        facts.offset,
        names.name_of(facts.layout),
    ]


def written_view(view: View) -> list[Any]:
    """A view as a row."""
    row = [view.region, view.dtype, list(view.shape), list(view.strides), view.offset]
    return [*row, int(view.conj), str(view.device)]


def read_records(data: dict[str, Any], *, views: list[View], values: StoredValues) -> list[TensorRecord]:
    """The records of a file; what they are about is checked by :func:`check_sources`."""
    reader = _RecordReader(several(data.get("facts"), _read_facts), views, values)
    return [reader.read(*items) for items in zip(*columns(table(data.get("records")), COLUMNS))]


class _RecordReader:
    """Makes records; equal facts and equal values are one object."""

    def __init__(self, facts: list[TensorFacts], views: list[View], values: StoredValues) -> None:
        self._facts = facts
        self._views = views
        self._values = values
        self._on_storage: dict[tuple[int, int], TensorFacts] = {}
        self._stored: dict[tuple[int, str | None], StoredValue] = {}

    def read(
        self,
        source: Any,
        index: Any,
        slot: Any,
        facts: Any,
        storage: Any,
        value: Any,
        status: Any,
        lost: Any,
    ) -> TensorRecord:
        made = TensorRecord(chosen(source, SOURCES), whole(index), whole(slot), None, None, None)
        known = None if facts is None else self._facts_at(place(facts, self._facts), whole(storage))
        made.facts = known
        made.lost = optional(lost, text)
        found = chosen(status, STATUSES)
        if value is not None:
            if known is None:
                raise DamagedError("a value without facts")
            made.kept = PLACEHOLDER
            made.history = self._value(place(value, self._views), found)
        elif found is not None:
            made.history = _OnlyStatus(found)
        return made

    def _facts_at(self, number: int, storage: int) -> TensorFacts:
        key = (number, storage)
        found = self._on_storage.get(key)
        if found is None:
            found = self._on_storage[key] = self._facts[number]._replace(storage=storage or None)
        return found

    def _value(self, number: int, status: str | None) -> StoredValue:
        key = (number, status)
        found = self._stored.get(key)
        if found is None:
            found = self._stored[key] = StoredValue(self._values, self._views[number], status)
        return found


class _OnlyStatus:
    """What is left of a value that is not in the file: whether it was finite."""

    __slots__ = ("status",)
    sealed = False

    def __init__(self, status: str) -> None:
        self.status: str | None = status

    def read(self, kept: Any, stamp: int) -> Any:
        return kept


def check_sources(records: list[TensorRecord], counts: dict[str, int], outs: list[int]) -> None:
    """Refuse records of sources that are not there; ``outs`` has the number of outputs of each call."""
    for record in records:
        whole(record.index, 0, counts[record.source] - 1)
        most = outs[record.index] if record.source == "op" else 1
        whole(record.slot, 0, max(most, 1) - 1)


def _read_facts(value: Any) -> TensorFacts:
    shape, dtype, device, nbytes, strides, offset, layout = row(value, 7)
    sizes = _sizes(shape)
    return TensorFacts(
        shape=sizes,
        dtype=names.named(dtype, names.DTYPES),
        device=names.device(device),
        nbytes=whole(nbytes),
        strides=None if strides is None else tuple(_of_length(several(strides, whole), len(sizes))),
        offset=whole(offset),
        layout=names.named(layout, names.LAYOUTS),
        storage=None,
    )


def _sizes(value: Any) -> tuple[int, ...]:
    """Sizes whose product is a number of elements that can be."""
    sizes = several(value, whole)
    total = 1
    for size in sizes:
        total *= max(size, 1)
    if len(sizes) > MOST_DIMS or total > BIGGEST >> 4:
        raise DamagedError("the sizes of a tensor were expected")
    return tuple(sizes)


def _of_length(value: list[int], length: int) -> list[int]:
    if len(value) != length:
        raise DamagedError(f"{length} numbers were expected")
    return value


def read_views(value: Any, values: StoredValues) -> list[View]:
    """The views of a file, each inside of its region."""
    return [_read_view(one, values) for one in rows(value)]


def _read_view(value: Any, values: StoredValues) -> View:
    region, dtype, shape, strides, offset, conj, device = row(value, 7)
    sizes = _sizes(shape)
    found = View(
        place(region, values.regions),
        text(dtype),
        sizes,
        tuple(_of_length(several(strides, whole), len(sizes))),
        whole(offset),
        bool(whole(conj, 0, 1)),
        names.device(device),
    )
    item = names.named(dtype, names.STORED).itemsize
    last = found.offset + sum((count - 1) * step for count, step in zip(found.shape, found.strides))
    if 0 not in sizes and (last + 1) * item > values.regions[found.region].size:
        raise DamagedError("a value reaches outside of its region")
    if 0 in sizes and found.offset:
        raise DamagedError("an empty value with an offset")
    return found
