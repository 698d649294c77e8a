"""Which calls are passes of one layer: the same place of the model, executed again.

Calls are told apart by a *key*: the function, the weights that it touches, the stateless modules it runs
in and the source lines that lead to it, all seen from the innermost module that holds weights (the
*owner*).  Equal keys alone do not make a loop, since ``for layer in layers`` runs different layers at
one source line; what lies between two calls decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from types import CodeType
from typing import Any, NamedTuple

from torchlens._collector import rare_collections
from torchlens.analysis.descent import descending
from torchlens.analysis.weights import WeightRegions
from torchlens.capture.callsite import LIMIT
from torchlens.capture.recording import ModuleCall, Recording, Site

Key = tuple[Any, ...]
OUTSIDE = -1
"""The owner of everything that runs in no module that holds weights."""


class Timeline:
    """What happens in one call of an owner, in order: its own ops, and the calls of owners inside it.

    ``ops`` has the recorded call, -1 for the call of an inner owner; ``bearing`` whether the event bears
    state; ``weighted`` whether its key names weights.
    """

    __slots__ = ("bearing", "keys", "ops", "weighted")

    def __init__(self) -> None:
        self.ops: list[int] = []
        self.keys: list[int] = []
        self.bearing: list[bool] = []
        self.weighted: list[bool] = []

    def add(self, op: int, key: int, *, weighted: bool) -> None:
        """Append an event."""
        self.ops.append(op)
        self.keys.append(key)
        self.bearing.append(weighted or op < 0)
        self.weighted.append(weighted)


class Pair(NamedTuple):
    """Two consecutive occurrences of a key in one owner call: positions among its events."""

    earlier: int
    later: int


@rare_collections()
def layers_of(recording: Recording, parents: Sequence[Sequence[int]]) -> list[int]:
    """Layer number of each recorded call; calls with one number are passes of one layer.

    Parameters
    ----------
    recording : Recording
        The run.
    parents : sequence of sequences of int
        For each call the calls whose outputs it reads.

    Returns
    -------
    list of int
        Numbers group calls and mean nothing else.

    Notes
    -----
    Two consecutive calls with one key inside one owner call are joined if the key names weights; or if
    between them something that bears state recurs (the loop's shared weights).  They are not joined if
    other state lies between them (other weights each time).  With no state between, they are joined if
    the later one descends from the earlier, or if calls joined that way lie between.  The j-th layer of
    a key in one call of an owner is the j-th in every call of it.  Linear in the number of calls.
    """
    keys = _Keys(recording)
    timelines = _timelines(recording, keys)
    undecided: dict[int, list[Pair]] = {}
    joined: dict[int, set[int]] = {}
    for owner, events in timelines.items():
        joined[owner], undecided[owner] = _decide_by_state(events)
    _decide_by_descent(timelines, undecided, joined, parents)
    return _number(recording, timelines, joined)


class _Keys:
    """Owners and keys of calls, with everything that recurs interned to small numbers."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._regions = WeightRegions(recording)
        self._codes: dict[CodeType, int] = {}
        self._code_of: dict[int, int] = {}
        self._numbers: dict[Key, int] = {}
        self._chains: dict[Key, tuple[int, ...]] = {}
        self._whole: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._entered: dict[int, tuple[int, tuple[int, ...], tuple[int, ...]]] = {OUTSIDE: (OUTSIDE, (), ())}

    def number(self, key: Key) -> int:
        """A small number that stands for a key."""
        return self._numbers.setdefault(key, len(self._numbers))

    def owns(self, call: ModuleCall) -> bool:
        """Whether a module call owns what runs in it."""
        return self._recording.modules[call.module].holds_state

    def owner(self, index: int) -> int:
        """The innermost call of a module that holds state at or around a module call."""
        return self._below(index)[0]

    def op(self, index: int) -> tuple[int, int, bool]:
        """Owner of a recorded call, its key, and whether the key names weights."""
        call = self._recording.calls[index]
        owner, modules, outer = self._below(call.call)
        regions = self._regions.of(index)
        chain = self._chain(call.site, outer)
        return owner, self.number((call.name, regions, modules, chain)), bool(regions)

    def _chain(self, site: Site, outer: tuple[int, ...]) -> tuple[int, ...]:
        """The folded chain of a site and what lies around it; worked out once for what recurs.

        Deep recursion is recorded only so far up; the same place was seen before, less deep.
        """
        spelled = (tuple(map(id, site[::2])), site[1::2], outer)
        chain = self._chains.get(spelled)
        if chain is None:
            chain = _folded(self._pairs(site) + outer)
            if len(site) >= 2 * LIMIT:
                chain = self._whole.get(chain[:2], chain)
            self._whole[chain[:2]] = self._chains[spelled] = chain
        return chain

    def _below(self, index: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Owner of what runs in a module call, and the modules and sites between the owner and it."""
        path = []
        while index not in self._entered:
            path.append(index)
            index = self._recording.module_calls[index].parent
        found = self._entered[index]
        for inner in reversed(path):
            call = self._recording.module_calls[inner]
            if self.owns(call):
                found = (inner, (), ())
            else:
                chain = self._chain(call.site, found[2])
                found = (found[0], (*found[1], call.module), chain)
            self._entered[inner] = found
        return found

    def _pairs(self, site: Site) -> tuple[int, ...]:
        """A chain of sites with numbers for code objects; equal code is one, however often compiled."""
        numbers = list(site)
        for position in range(0, len(numbers), 2):
            code = numbers[position]
            number = self._code_of.get(id(code))
            if number is None:
                number = self._codes.setdefault(code, len(self._codes))
                self._code_of[id(code)] = number
            numbers[position] = number
        return tuple(numbers)


def _folded(chain: tuple[int, ...]) -> tuple[int, ...]:
    """The chain with one entry a code object, the innermost, so that recursion depth does not show."""
    codes = chain[::2]
    if len(set(codes)) == len(codes):
        return chain
    first: dict[int, int] = {}
    for code, offset in zip(codes, chain[1::2], strict=True):
        first.setdefault(code, offset)
    return tuple(number for pair in first.items() for number in pair)


def _timelines(recording: Recording, keys: _Keys) -> dict[int, Timeline]:
    """The events of each owner call, in order."""
    timelines = {OUTSIDE: Timeline()}
    calls = recording.module_calls
    entered = 0
    for index in range(len(recording.calls) + 1):
        while entered < len(calls) and calls[entered].first_op <= index:
            if keys.owns(calls[entered]):
                around = keys.owner(calls[entered].parent)
                number = keys.number(("call", calls[entered].module))
                timelines[around].add(-1, number, weighted=False)
                timelines[entered] = Timeline()
            entered += 1
        if index < len(recording.calls):
            owner, number, weights = keys.op(index)
            timelines[owner].add(index, number, weighted=weights)
    return timelines


def _decide_by_state(events: Timeline) -> tuple[set[int], list[Pair]]:
    """Positions joined to the previous one of their key by state, and the pairs left open."""
    count: dict[int, int] = {}
    for key, bears in zip(events.keys, events.bearing, strict=True):
        if bears:
            count[key] = count.get(key, 0) + 1
    bearing = list(accumulate(events.bearing, initial=0))
    recurring = list(accumulate((count.get(key, 0) > 1 for key in events.keys), initial=0))
    joined: set[int] = set()
    undecided: list[Pair] = []
    last: dict[int, int] = {}
    for position, (op, key) in enumerate(zip(events.ops, events.keys, strict=True)):
        if op < 0:
            continue
        previous = last.get(key)
        last[key] = position
        if previous is None:
            continue
        if events.weighted[position] or recurring[position] > recurring[previous + 1]:
            joined.add(position)
        elif bearing[position] == bearing[previous + 1]:
            undecided.append(Pair(previous, position))
    return joined, undecided


def _decide_by_descent(
    timelines: dict[int, Timeline],
    undecided: dict[int, list[Pair]],
    joined: dict[int, set[int]],
    parents: Sequence[Sequence[int]],
) -> None:
    """Join open pairs that hand data on, then those with such a pair's call between them."""
    asked = [
        (timelines[owner].ops[a], timelines[owner].ops[b])
        for owner, pairs in undecided.items()
        for a, b in pairs
    ]
    found = descending(asked, parents)
    for owner, pairs in undecided.items():
        ops = timelines[owner].ops
        by_data = [False] * len(ops)
        open_pairs = []
        for pair in pairs:
            if (ops[pair.earlier], ops[pair.later]) in found:
                by_data[pair.earlier] = by_data[pair.later] = True
                joined[owner].add(pair.later)
            else:
                open_pairs.append(pair)
        before = list(accumulate(by_data, initial=0))
        joined[owner].update(b for a, b in open_pairs if before[b] > before[a + 1])


def _number(recording: Recording, timelines: dict[int, Timeline], joined: dict[int, set[int]]) -> list[int]:
    """Layer numbers from what is joined, aligned over the calls of each owner."""
    layers = [0] * len(recording.calls)
    numbers: dict[tuple[int, int, int], int] = {}
    for owner, events in timelines.items():
        module = recording.module_calls[owner].module if owner != OUTSIDE else OUTSIDE
        order: dict[int, int] = {}
        for position, (op, key) in enumerate(zip(events.ops, events.keys, strict=True)):
            if op >= 0:
                place = order.get(key, -1) + (position not in joined[owner])
                order[key] = place
                layers[op] = numbers.setdefault((module, key, place), len(numbers))
    return layers
