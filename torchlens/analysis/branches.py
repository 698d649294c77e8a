"""Python branches on tensors: which op was tested, with which outcome, and what ran because of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchlens._collector import rare_collections
from torchlens.analysis.source import Sources, Span, Test
from torchlens.capture.callsite import Location, location
from torchlens.capture.recording import ReadRecord, Recording, TensorRecord

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.parts import Edge
    from torchlens.trace.trace import Trace

TRUTH = frozenset(["__bool__", "is_nonzero"])
"""Reads that ask a tensor for its truth value."""


@dataclass(frozen=True, slots=True)
class Read:
    """A value that left the graph into Python.

    Attributes
    ----------
    op : Op or None
        The op that made the tensor.
    kind : str
        How it was read: ``item``, ``__float__``, ``tolist``, ``__bool__``, ...
    outcome : object
        The value, where it is a plain number, truth value or text.
    location : Location or None
        File and line.
    """

    op: Op | None
    kind: str
    outcome: Any
    location: Location | None


@dataclass(frozen=True, slots=True)
class Branch:
    """One truth value that Python read from a tensor.

    Attributes
    ----------
    op : Op or None
        The op that made the tested tensor.
    outcome : bool
        The truth value of the tensor.
    location : Location or None
        File and line of the test.
    kind : str
        ``if elif while ternary assert comprehension``; ``and`` or ``or`` for an operand that only led on
        to the next one, and for both outside of any test; ``not``; ``unknown`` without source.
    test : str
        Source of the whole test, ``""`` if unknown.
    holds : bool or None
        Whether the whole test holds, where the outcome settles that.
    then_ops, else_ops : tuple of Op
        What ran inside either arm because of this test, ops of inner calls and inner branches included.
    then_edges, else_edges : tuple of Edge
        The edges on which data enters the first op of either arm.
    """

    op: Op | None
    outcome: bool
    location: Location | None = None
    kind: str = "unknown"
    test: str = ""
    holds: bool | None = None
    then_ops: tuple[Op, ...] = ()
    else_ops: tuple[Op, ...] = ()
    then_edges: tuple[Edge, ...] = ()
    else_edges: tuple[Edge, ...] = ()


def reads(trace: Trace) -> list[Read]:
    """Every value that left the graph, in order: truth values, ``item()``, ``float()``, ``tolist()``."""
    chains, origin = _Chains(trace.recording), _origins(trace)
    return [
        Read(_origin(trace, origin, read.tensor), read.kind, read.outcome, chains.place(chains.of_read(read)))
        for read in trace.recording.reads
    ]


@rare_collections()
def branches(trace: Trace) -> list[Branch]:
    """Every branch on a tensor's truth value, in order; each test of a ``while`` is one."""
    derived = trace.recording.derived
    if derived is not None:
        from torchlens.analysis.branch_rows import from_rows

        return from_rows(trace, derived.branches)
    return _Finder(trace).branches()


def entries(found: list[Branch]) -> dict[Edge, tuple[Branch, bool]]:
    """For each edge that enters an arm, the innermost branch that it enters and whether the then-arm."""
    entered: dict[Edge, tuple[Branch, bool]] = {}
    for branch in found:
        entered.update(dict.fromkeys(branch.then_edges, (branch, True)))
        entered.update(dict.fromkeys(branch.else_edges, (branch, False)))
    return entered


class _Chains:
    """Chains of call sites from a call or read out to where the model was called."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._around: dict[int, tuple[Any, ...]] = {-1: ()}
        self._places: dict[tuple[int, ...], Location | None] = {}

    def of_read(self, read: ReadRecord) -> tuple[Any, ...]:
        return (*read.site, *self._outer(read.call))

    def of_call(self, index: int) -> tuple[Any, ...]:
        call = self._recording.calls[index]
        return (*call.site, *self._outer(call.call))

    def place(self, site: tuple[Any, ...]) -> Location | None:
        """File and line of a chain; worked out once for what recurs."""
        key = (*map(id, site[::2]), *site[1::2])
        if key not in self._places:
            self._places[key] = location(site)
        return self._places[key]

    def _outer(self, index: int) -> tuple[Any, ...]:
        path = []
        while index not in self._around:
            path.append(index)
            index = self._recording.module_calls[index].parent
        outer = self._around[index]
        for inner in reversed(path):
            outer = (*self._recording.module_calls[inner].site, *outer)
            self._around[inner] = outer
        return outer


class _Finder:
    """Finds the branches of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._sources = Sources()
        self._chains = _Chains(trace.recording)
        self._reads = [read for read in trace.recording.reads if read.kind in TRUTH]
        self._sites = [self._chains.of_read(read) for read in self._reads]
        self._tests = [self._test(site) for site in self._sites]

    def _test(self, site: tuple[Any, ...]) -> Test | None:
        return self._sources.test_at(site[0], site[1]) if site else None

    def branches(self) -> list[Branch]:
        following = self._following()
        origin = _origins(self._trace)
        return [
            self._branch(place, _origin(self._trace, origin, read.tensor), following[place])
            for place, read in enumerate(self._reads)
        ]

    def _following(self) -> list[int | None]:
        """For each read the next one of the same test in the same frame."""
        found: list[int | None] = [None] * len(self._reads)
        latest: dict[Any, int] = {}
        for place, (site, test) in enumerate(zip(self._sites, self._tests, strict=True)):
            if test is not None:
                codes = tuple(map(id, site[::2]))
                key = (codes, site[3::2], test.span)
                if key in latest:
                    found[latest[key]] = place
                latest[key] = place
        return found

    def _branch(self, place: int, op: Op | None, following: int | None) -> Branch:
        read, site, test = self._reads[place], self._sites[place], self._tests[place]
        outcome, where = bool(read.outcome), self._chains.place(site)
        if test is None:
            text = self._sources.text_at(site[0], site[1]) if site else ""
            return Branch(op, outcome, where, "unknown", text)
        holds = test.holds(outcome)
        if following is not None and self._leads_on(test, self._tests[following]):
            joint = next((step.kind for step in test.steps if step.kind != "not"), "and")
            return Branch(op, outcome, where, joint, test.text, holds)
        end = len(self._trace.recording.calls) if following is None else self._reads[following].before_op
        then_ops, else_ops = self._arms(read.before_op, end, site, test)
        return Branch(
            op,
            outcome,
            where,
            test.kind,
            test.text,
            holds,
            then_ops,
            else_ops,
            _entering(then_ops),
            _entering(else_ops),
        )

    @staticmethod
    def _leads_on(test: Test, following: Test | None) -> bool:
        """Whether the next read asks a later operand of the same test, or the same chained comparison."""
        if following is None or following.operand.column < 0:
            return False
        if following.operand == test.operand:
            return test.chained
        return (following.operand.line, following.operand.column) > (test.operand.line, test.operand.column)

    def _arms(
        self, start: int, end: int, site: tuple[Any, ...], test: Test
    ) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
        """The calls from the test on while its frame stays inside one of the arms."""
        arms: tuple[list[Op], list[Op]] = ([], [])
        steps = self._trace.call_steps
        code, outer = site[0], site[2:]
        for index in range(start, end):
            chain = self._chains.of_call(index)
            place = len(chain) - len(site)
            if place < 0 or chain[place] != code or chain[place + 2 :] != outer:
                break
            span = self._sources.span(code, chain[place + 1])
            if _within(test.then_arm, span):
                arms[0].append(self._trace.ops[steps[index]])
            elif _within(test.else_arm, span):
                arms[1].append(self._trace.ops[steps[index]])
            else:
                break
        return tuple(arms[0]), tuple(arms[1])


def _within(arm: tuple[Span, ...], span: Span) -> bool:
    return any(piece.holds(span) for piece in arm)


def _entering(ops: tuple[Op, ...]) -> tuple[Edge, ...]:
    """Edges from outside into the first op of an arm that reads anything from outside."""
    inside = set(ops)
    for op in ops:
        edges = tuple(edge for edge in op.inputs if edge.parent not in inside)
        if edges:
            return edges
    return ()


def _origins(trace: Trace) -> dict[tuple[str, int], Op]:
    """The ops that stand for inputs, buffers and constants, by source."""
    return {
        (record.source, record.index): op
        for op in trace.ops
        if op.kind not in ("call", "output")
        for record in op.records
    }


def _origin(trace: Trace, origins: dict[tuple[str, int], Op], record: TensorRecord) -> Op | None:
    if record.source == "op":
        return trace.ops[trace.call_steps[record.index]]
    return origins.get((record.source, record.index))
