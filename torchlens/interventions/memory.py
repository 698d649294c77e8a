"""Which recorded values share memory, and which calls write to it.

Records tell states apart; to run calls again their tensors must share memory as they did.  Values
are gathered into groups of common memory, and a group that is written is replayed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from torchlens.capture.arguments import SCALARS, filled
from torchlens.capture.facts import TensorFacts
from torchlens.capture.functions import Plan
from torchlens.capture.recording import CallRecord, Recording, TensorRecord, records_in
from torchlens.capture.writers import Target, keyword_targets

Key = tuple[str, int]
"""Where a record comes from: ``(source, index)``."""


def key_of(record: TensorRecord) -> Key:
    """Source and index of a record."""
    return record.source, record.index


class Memory:
    """Groups of records on common memory, and the calls that take part in each group.

    Attributes
    ----------
    writes : bool
        Whether any call writes; if none does there are no groups to care about.
    members : dict
        Steps of the calls that write to a group or return a part of it.
    written : set
        Groups that some call writes to.
    targets : dict
        For each writing call, the argument records that it writes.
    late : dict
        For each writing call, records of written arguments that it does not return, with the argument.
    """

    def __init__(self, recording: Recording) -> None:
        self.calls = recording.calls
        self.members: dict[int, list[int]] = {}
        self.written: set[int] = set()
        self.targets: dict[int, list[TensorRecord]] = {}
        self.late: dict[int, list[tuple[TensorRecord, TensorRecord]]] = {}
        self._group: dict[int, int] = {}
        self._made: dict[Key, list[TensorRecord]] = {}
        self._same: dict[int, TensorRecord] = {}
        self._held: list[TensorRecord] = []
        self._unseen: set[int] = set()
        self.writes = any(call.mutates for call in self.calls)
        self.sources: list[TensorRecord] = []
        self._read_sources(recording)
        for step, call in enumerate(self.calls if self.writes else ()):
            self._read_call(step, call)

    def group(self, record: TensorRecord) -> int | None:
        """The written group that a record belongs to, if to one."""
        found = self._group.get(id(self.same(record)))
        return found if found in self.written else None

    def same(self, record: TensorRecord) -> TensorRecord:
        """The first record of the state that ``record`` stands for: one state may have several objects."""
        found = self._same.get(id(record))
        if found is not None:
            return found
        if not self.writes and any(record is made for made in self.of(key_of(record))):
            return record
        found = self._match(record)
        if found is None:
            self._take(record)
            return record
        self._same[id(record)] = found
        self._held.append(record)
        return found

    def of(self, key: Key) -> list[TensorRecord]:
        """All states that a source or call made."""
        if key[0] == "op" and not self.writes:
            return list(self.calls[key[1]].outs)
        return self._made.get(key, [])

    def groups(self, records: Iterable[TensorRecord]) -> set[int]:
        """The written groups that records belong to."""
        found = (self.group(record) for record in records)
        return {group for group in found if group is not None}

    def groups_of_call(self, step: int) -> set[int]:
        """Written groups that a call writes to or returns a part of."""
        return self.groups((*self.calls[step].outs, *self.targets.get(step, ())))

    # -- building ------------------------------------------------------------------------------

    def _take(self, record: TensorRecord, group: int | None = None) -> None:
        self._same[id(record)] = record
        self._held.append(record)
        self._made.setdefault(key_of(record), []).append(record)
        self._group[id(record)] = len(self._held) if group is None else group

    def _read_sources(self, recording: Recording) -> None:
        by_storage: dict[int, int] = {}
        lists: tuple[list[Any], ...] = (
            recording.inputs,
            recording.params,
            recording.buffers,
            recording.constants,
        )
        for items in lists:
            for item in items:
                storage = _storage(item.record) if self.writes else None
                self.sources.append(item.record)
                self._take(item.record, by_storage.get(storage) if storage is not None else None)
                if storage is not None:
                    by_storage.setdefault(storage, self._group[id(item.record)])

    def _read_call(self, step: int, call: CallRecord) -> None:
        given = [self.same(record) for _, record in records_in((call.args, call.kwargs))]
        by_storage = {_storage(record): self._group[id(record)] for record in given}
        by_storage.pop(None, None)
        for record in call.outs:
            storage = _storage(record)
            self._take(record, by_storage.get(storage) if storage is not None else None)
            self._join(self._group[id(record)], step)
        if call.mutates:
            self.targets[step] = [self.same(record) for record in written_arguments(call)]
            for record in self.targets[step]:
                self.written.add(self._group[id(record)])
                self._join(self._group[id(record)], step)

    def _join(self, group: int, step: int) -> None:
        steps = self.members.setdefault(group, [])
        if not steps or steps[-1] != step:
            steps.append(step)

    def unseen(self, record: TensorRecord) -> bool:
        """Whether something unseen made the record's content from what its source made."""
        return id(record) in self._unseen

    def _match(self, record: TensorRecord) -> TensorRecord | None:
        """The known record of the same tensor as a record met for the first time as an argument."""
        known = self.of(key_of(record))
        place = _place(record)
        for other in known:
            if _place(other) == place:
                return other
        for target in self.targets.get(record.index, ()) if record.source == "op" else ():
            if _place(target) == place:
                self.late.setdefault(record.index, []).append((record, target))
                self._take(record, self._group[id(target)])
                return record
        if known:
            self._unseen.add(id(record))
        return None


class Restated(TensorRecord):
    """A state with another value; for questions of memory it stands where the recorded one stood."""

    __slots__ = ("origin",)

    def __init__(self, instead_of: TensorRecord, version: int | None, *, place: bool = True) -> None:
        super().__init__(instead_of.source, instead_of.index, instead_of.slot, None, None, version)
        self.origin = _origin(instead_of) if place else None


def mapped(args: tuple[Any, ...], give: Callable[[TensorRecord], Any]) -> tuple[Any, ...]:
    """Arguments with every record replaced: :func:`filled`, quick where they are flat."""
    return tuple(
        [
            give(value)
            if isinstance(value, TensorRecord)
            else value
            if value.__class__ in SCALARS
            else filled(value, give)
            for value in args
        ]
    )


def _origin(record: TensorRecord) -> TensorFacts | None:
    return record.origin if isinstance(record, Restated) else record.facts


def _storage(record: TensorRecord) -> int | None:
    facts = _origin(record)
    return facts.storage if facts is not None else None


def _place(record: TensorRecord) -> Any:
    facts = _origin(record)
    return None if facts is None else (facts.shape, facts.strides, facts.offset, facts.dtype, facts.storage)


def written_arguments(call: CallRecord) -> list[TensorRecord]:
    """The argument records that a call writes."""
    stand_ins: dict[int, TensorRecord] = {}
    held: list[torch.Tensor] = []

    def stand_in(record: TensorRecord) -> torch.Tensor:
        held.append(torch.empty(0, device="meta"))
        stand_ins[id(held[-1])] = record
        return held[-1]

    args, kwargs = filled(call.args, stand_in), filled(call.kwargs, stand_in)
    return [stand_ins[id(t.tensor)] for t in targets_of(call, args, kwargs) if id(t.tensor) in stand_ins]


_PLANS: dict[Any, Plan] = {}


def plan_of(call: CallRecord) -> Plan:
    """How the recorder treats a call's function."""
    plan = _PLANS.get(call.func)
    if plan is None:
        plan = _PLANS[call.func] = Plan(call.func)
    return plan


def targets_of(call: CallRecord, args: Any, kwargs: Any) -> Iterator[Target]:
    """What a call with these arguments is going to write."""
    plan = plan_of(call)
    if plan.writer is not None:
        yield from plan.writer(args, kwargs)
    if kwargs and ("out" in kwargs or "inplace" in kwargs):
        yield from keyword_targets(args, kwargs)
