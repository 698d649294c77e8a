"""How much memory the outputs need at one time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlens._collector import rare_collections
from torchlens.capture.recording import records_in

if TYPE_CHECKING:
    from torchlens.capture.recording import TensorRecord
    from torchlens.trace.op import Op
    from torchlens.trace.trace import Trace

Block = int
"""One piece of memory that a call took, by number; views and in-place results are on their base's."""


@rare_collections()
def peak_bytes(trace: Trace) -> int:
    """Largest sum of outputs alive at one time, if each is freed after its last reader.

    Inputs, parameters, buffers and constants are not counted, nor what a call needs inside itself.
    What the model returns lives to the end.  Views and in-place results extend the life of the memory
    that they stand on.
    """
    lives = _Lives(trace)
    alive = peak = 0
    freed: dict[int, int] = {}
    for block, born in enumerate(lives.born):
        freed[lives.last[block]] = freed.get(lives.last[block], 0) + lives.size[block]
        lives.grown[born] = lives.grown.get(born, 0) + lives.size[block]
    for step in range(len(trace.ops)):
        alive += lives.grown.get(step, 0)
        peak = max(peak, alive)
        alive -= freed.get(step, 0)
    return peak


class _Lives:
    """When each block is taken, when it is read last, and how large it is."""

    def __init__(self, trace: Trace) -> None:
        self.born: list[int] = []
        self.last: list[int] = []
        self.size: list[int] = []
        self.grown: dict[int, int] = {}
        self._blocks: dict[tuple[int, int], Block] = {}
        end = len(trace.ops) - 1
        for op in trace.ops:
            if op.kind == "call":
                self._read(op, op.step)
                self._write(op)
            elif op.kind == "output":
                self._read(op, end)

    def _read(self, op: Op, until: int) -> None:
        for edge in op.inputs:
            records = edge.parent.records
            if edge.parent.kind == "call" and edge.out_index < len(records):
                block = self._blocks.get(_key(records[edge.out_index]))
                if block is not None:
                    self.last[block] = max(self.last[block], until)

    def _write(self, op: Op) -> None:
        assert op.record is not None
        given: dict[int, Block | None] = {}
        for _, record in records_in((op.record.args, op.record.kwargs)):
            known = record.facts
            if known is not None and known.storage is not None:
                block = self._blocks.get(_key(record)) if record.source == "op" else None
                given.setdefault(known.storage, block)
        for record in op.records:
            known = record.facts
            if known is None:
                continue
            if known.storage not in given:
                fresh = len(self.born)
                self.born.append(op.step)
                self.last.append(op.step)
                self.size.append(known.nbytes)
                if known.storage is not None:
                    given[known.storage] = fresh
                self._blocks[_key(record)] = fresh
                continue
            shared = given[known.storage] if known.storage is not None else None
            if shared is not None:
                self._blocks[_key(record)] = shared
                self.last[shared] = max(self.last[shared], op.step)


def _key(record: TensorRecord) -> tuple[int, int]:
    return record.index, record.slot
