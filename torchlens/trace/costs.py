"""Facts on ops that are computed when first asked for, each for the whole trace at once."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from torchlens.trace.quantities import Bytes, Count, Duration, Flops

if TYPE_CHECKING:
    from torchlens.analysis.flop_rules.registry import Work
    from torchlens.trace.op import Op
    from torchlens.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the trace; an unknown share is left out and counted in ``unknown_*``.

    Attributes
    ----------
    ops : int
        Recorded calls.
    params, trainable_params : Count
        Elements, each shared parameter once.
    flops, macs : Flops, Count
        One multiply-add is two FLOPs; ``macs`` are those of matrix products and convolutions.
    bytes : Bytes
        Memory of all outputs, aliases not counted.
    peak_bytes : Bytes
        Largest sum of outputs alive at one time, if each died after its last reader.
    func_duration : Duration
        Seconds in recorded calls.
    """

    ops: int
    params: Count
    trainable_params: Count
    param_bytes: Bytes
    flops: Flops
    macs: Count
    unknown_flops: int
    bytes: Bytes
    peak_bytes: Bytes
    saved_for_backward: Bytes | None
    func_duration: Duration | None


class FactsTable:
    """The computed facts of one trace, by op."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @cached_property
    def _work(self) -> list[Work | None]:
        from torchlens.analysis.flops import work

        return work(self._trace)

    @cached_property
    def _nonfinite(self) -> list[str | None]:
        from torchlens.analysis.finite import nonfinite

        return nonfinite(self._trace)

    @cached_property
    def _branch_tests(self) -> dict[int, bool]:
        return {b.op.step: b.outcome for b in self._trace.branches if b.op is not None}

    @cached_property
    def _durations(self) -> list[Duration | None]:
        recording = self._trace.recording
        runs = recording.timing.durations
        found: list[Duration | None] = []
        for position, call in enumerate(recording.calls):
            if recording.fake or call.failed or call.func is None:
                found.append(None)
            elif runs:
                found.append(Duration(statistics.median(run[position] for run in runs) * 1e-9))
            else:
                found.append(Duration((call.end - call.start) * 1e-9))
        return found

    def flops_of(self, op: Op) -> Flops | None:
        """FLOPs of an op; 0 for what is no call."""
        if op.kind != "call":
            return None
        done = self._work[op.step]
        return None if done is None else Flops(done.flops)

    def macs_of(self, op: Op) -> Count | None:
        """Multiply-adds of an op's matrix products and convolutions."""
        done = self._work[op.step]
        return None if done is None else Count(done.macs)

    def nonfinite_of(self, op: Op) -> str | None:
        """Nonfinite status of an op."""
        return self._nonfinite[op.step]

    def branch_test_of(self, op: Op) -> bool | None:
        """Outcome of a branch on an op's value."""
        return self._branch_tests.get(op.step)

    def duration_of(self, op: Op) -> Duration | None:
        """Duration of a call."""
        return self._durations[self._trace.call_index(op)] if op.kind == "call" else None

    def durations_of(self, op: Op) -> tuple[Duration, ...]:
        """Duration of a call in each timed run."""
        if self.duration_of(op) is None:
            return ()
        place = self._trace.call_index(op)
        return tuple(Duration(run[place] * 1e-9) for run in self._trace.recording.timing.durations)

    def saved_of(self, op: Op) -> Bytes | None:
        """Bytes saved for backward by a call."""
        saved = self._trace.recording.saved
        if saved is None or op.kind != "call":
            return None
        value = saved.get(self._trace.call_index(op))
        return None if value is None else Bytes(value)

    def is_alias(self, op: Op) -> bool:
        """Whether every output shares memory with an input of the call."""
        if op.kind != "call" or not op.records:
            return False
        given = self._given_storages(op)
        return all(f is not None and f.storage is not None and f.storage in given for f in op.facts)

    def bytes_of(self, op: Op) -> Bytes | None:
        """Memory of the outputs that share none with an input, each storage once."""
        if not op.records:
            return None
        given = self._given_storages(op)
        counted: set[int] = set()
        total = 0
        for fact in op.facts:
            if fact is None:
                return None
            if fact.storage is not None:
                if fact.storage in given or fact.storage in counted:
                    continue
                counted.add(fact.storage)
            total += fact.nbytes
        return Bytes(total)

    @staticmethod
    def _given_storages(op: Op) -> set[int]:
        if op.record is None:
            return set()
        from torchlens.capture.recording import records_in

        found = (record.facts for _, record in records_in((op.record.args, op.record.kwargs)))
        return {fact.storage for fact in found if fact is not None and fact.storage is not None}

    @cached_property
    def totals(self) -> Totals:
        """Sums over all ops."""
        from torchlens.analysis.memory import peak_bytes

        trace = self._trace
        calls = [op for op in trace.ops if op.kind == "call"]
        flops = [op.flops for op in calls]
        known = sum(int(value) for value in flops if value is not None)
        durations = [op.func_duration for op in calls]
        timed = [value for value in durations if value is not None]
        saved = [op.saved_for_backward for op in calls] if trace.recording.saved is not None else None
        params = trace.params
        return Totals(
            ops=len(calls),
            params=Count(sum(p.numel for p in params)),
            trainable_params=Count(sum(p.numel for p in params if p.trainable)),
            param_bytes=Bytes(sum(p.bytes for p in params)),
            flops=Flops(known),
            macs=Count(sum(done.macs for done in self._work if done is not None)),
            unknown_flops=sum(value is None for value in flops),
            bytes=Bytes(sum(int(op.bytes or 0) for op in calls)),
            peak_bytes=Bytes(peak_bytes(trace)),
            saved_for_backward=None if saved is None else Bytes(sum(int(s or 0) for s in saved)),
            func_duration=Duration(sum(timed)) if timed else None,
        )
