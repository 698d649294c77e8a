"""The plain record of one run: what was called, on what, inside which module.

Nothing here computes; a :class:`Recording` is what the recorder writes and what everything else reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol
from weakref import ReferenceType, ref

from torchlens._torch_compat import no_torch_function
from torchlens.capture.facts import TensorFacts, facts_of

if TYPE_CHECKING:
    import torch

    from torchlens.capture.context import CallContext

SourceKind = Literal["op", "input", "param", "buffer", "constant"]
Site = tuple[Any, ...]
"""Flat chain of call sites, innermost first: ``(code, offset, code, offset, ...)``."""

Path = tuple[Any, ...]
"""Where something stands inside nested containers: positions, keys and attribute names."""


class Contents(Protocol):
    """Where past content is read back from: what writes replaced, or a file.

    ``status`` says whether it is finite, where that is known without reading.
    """

    sealed: bool
    status: str | None

    def read(self, kept: torch.Tensor, stamp: int) -> torch.Tensor:
        """The content of ``kept`` at a moment."""


class TensorRecord:
    """One tensor as it was at one moment: who made it, its facts, and its value if kept.

    A record stands for a state, not for an object: a tensor that is written in place gets a new one.
    Where no gradient is needed the kept value is the tensor object itself and ``weak`` is unset.
    """

    __slots__ = ("_facts", "history", "index", "kept", "lost", "slot", "source", "stamp", "version", "weak")

    def __init__(
        self,
        source: SourceKind,
        index: int,
        slot: int,
        weak: ReferenceType[torch.Tensor] | None,
        kept: torch.Tensor | None,
        version: int | None,
    ) -> None:
        self.source = source
        self.index = index
        self.slot = slot
        self.weak = weak
        self.kept = kept
        self.version = version
        self.history: Contents | None = None
        self.stamp = 0
        self.lost: str | None = None
        self._facts: TensorFacts | None = None

    @property
    def facts(self) -> TensorFacts | None:
        """Shape, dtype, device, size and memory; read off the kept value when first asked for."""
        if self._facts is None and self.kept is not None:
            with no_torch_function():
                self._facts = facts_of(self.kept)
        return self._facts

    @facts.setter
    def facts(self, facts: TensorFacts | None) -> None:
        self._facts = facts

    @property
    def settled(self) -> TensorFacts | None:
        """The facts, if they were read already."""
        return self._facts

    def stands_for(self, tensor: torch.Tensor) -> bool:
        """Whether this record was made for that very object."""
        return self.kept is tensor or (self.weak is not None and self.weak() is tensor)

    def live(self) -> torch.Tensor | None:
        """The tensor object itself, if it still exists."""
        return self.weak() if self.weak is not None else self.kept

    def freeze(self) -> None:
        """Keep geometry and memory of now, whatever becomes of the tensor object."""
        if self.weak is None and self.kept is not None:
            self.weak = ref(self.kept)
            self.kept = self.kept.detach()

    def lose(self, reason: str) -> None:
        """Give the value up, because it was changed in a way that could not be foreseen."""
        if self.kept is not None:
            self.kept, self.history, self.lost = None, None, reason

    def settle_facts(self) -> None:
        """Read the facts now, before the kept value moves to other memory or is dropped."""
        if self._facts is None and self.kept is not None:
            self._facts = facts_of(self.kept)

    def __repr__(self) -> str:
        return f"{self.source}[{self.index}].{self.slot}"


class HeldNode(NamedTuple):
    """An autograd node whose saved tensors belong to the user's own hooks: reading them would run these."""

    node: Any


class CallRecord(NamedTuple):
    """One recorded call.

    ``args``/``kwargs`` are as given, with each tensor replaced by its :class:`TensorRecord`; ``out``
    likewise.  ``outs`` lists the output tensors.  ``writes_seen`` are earlier writes through other
    aliases that an argument's memory depends on, as ``(path of the argument, record of the write)``.
    ``start``/``end`` are nanoseconds of the injected clock.  ``call`` indexes the module calls.
    """

    func: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any
    outs: tuple[TensorRecord, ...]
    start: int
    end: int
    site: Site
    call: int
    mutates: bool
    writes_seen: tuple[tuple[Path, TensorRecord, bool], ...]
    grad_fn: Any
    failed: bool


@dataclass(slots=True)
class ModuleRecord:
    """One module of the model: its addresses (several when shared) and its class."""

    addresses: list[str]
    class_name: str
    params: list[int]
    buffers: list[int]
    registered: bool
    training: bool
    holds_state: bool
    source_file: str | None = None
    source_line: int | None = None
    extra: str = ""


@dataclass(slots=True)
class ModuleCall:
    """One call of one module; ``parent`` indexes the call around it (-1 at the top)."""

    module: int
    parent: int
    site: Site
    first_op: int
    end_op: int = -1
    inputs: Any = None
    output: Any = None
    failed: bool = False
    opaque: bool = False


@dataclass(slots=True)
class ParamRecord:
    """One parameter, each shared tensor once, under all of its addresses."""

    addresses: list[str]
    trainable: bool
    registered: bool
    record: TensorRecord

    @property
    def facts(self) -> TensorFacts | None:
        """Facts of the tensor when the run began."""
        return self.record.facts


@dataclass(slots=True)
class BufferRecord:
    """One registered buffer under all of its addresses."""

    addresses: list[str]
    persistent: bool
    record: TensorRecord

    @property
    def facts(self) -> TensorFacts | None:
        """Facts of the tensor when the run began."""
        return self.record.facts


@dataclass(slots=True)
class InputRecord:
    """One tensor given to the model, named as the forward's signature names it."""

    address: str
    record: TensorRecord


@dataclass(slots=True)
class OutputRecord:
    """One tensor that the model returned; ``writes_seen`` as in :class:`CallRecord`."""

    address: str
    record: TensorRecord
    writes_seen: tuple[tuple[Path, TensorRecord, bool], ...] = ()


@dataclass(slots=True)
class ConstantRecord:
    """A tensor that no recorded call made, and the reason as far as known."""

    reason: str
    address: str | None
    record: TensorRecord


@dataclass(slots=True)
class ReadRecord:
    """A value that left the graph into Python (``bool``, ``item``, ``tolist``, ``numpy``, ...)."""

    kind: str
    tensor: TensorRecord
    outcome: Any
    site: Site
    before_op: int
    call: int


@dataclass(slots=True)
class Failure:
    """Where a forward stopped: the op that raised (if one did) and the module calls open then."""

    exception: BaseException
    op: int | None
    calls: list[int]


@dataclass(slots=True)
class Timing:
    """How the durations were taken."""

    runs: int = 1
    warmup: int = 0
    values_kept: bool = True
    clock: str = "cpu"
    durations: list[list[int]] = field(default_factory=list)


@dataclass(slots=True)
class Audit:
    """What ran outside of the recorded calls, in the traced thread."""

    outside: dict[str, int] = field(default_factory=dict)
    unknown_sources: int = 0
    changed_values: int = 0

    @property
    def count(self) -> int:
        """Number of dispatches outside of recorded calls; 0 is the promise."""
        return sum(self.outside.values())

    def __int__(self) -> int:
        return self.count


@dataclass(frozen=True)
class EditRecord:
    """One intervention as the record tells it.

    Attributes
    ----------
    site, action : str
        As written.
    engine : {"replay", "rerun", "capture"}
        How it was made: recomputed from kept values, or live while the model ran.
    labels : tuple of str
        The ops that it hit.
    inferred : bool
        Whether the record alone says so and no op confirms it.
    """

    site: str
    action: str
    engine: str
    labels: tuple[str, ...] = ()
    inferred: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for files."""
        return {"site": self.site, "action": self.action, "engine": self.engine, "labels": list(self.labels)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, confirmed: bool = False) -> EditRecord:
        """The inverse; inferred unless the ops that it hit are at hand."""
        return cls(data["site"], data["action"], data["engine"], tuple(data["labels"]), not confirmed)


@dataclass(frozen=True, slots=True)
class Derived:
    """What only the code that ran can tell, worked out before saving; a loaded recording has no code.

    Attributes
    ----------
    layers : list of int
        Layer number of each recorded call.
    work : list of tuple
        Multiply-adds and other operations of each recorded call, ``None`` where unknown.
    branches : list of tuple
        As :mod:`torchlens.analysis.branch_rows` writes them.
    """

    layers: list[int]
    work: list[tuple[int, int] | None]
    branches: list[tuple[Any, ...]]


@dataclass(slots=True)
class Recording:
    """All that one run left behind.

    ``contexts`` holds generators and casting of the calls that depend on them; ``edited`` maps each
    edit's position in ``edits`` to the steps in ``Trace.ops`` that it hit.  ``layers`` is the layer number
    of each call once worked out: forks have the same layers, whatever their values.
    """

    name: str
    class_name: str
    log: list[tuple[Any, ...]] = field(default_factory=list)
    modules: list[ModuleRecord] = field(default_factory=list)
    module_calls: list[ModuleCall] = field(default_factory=list)
    params: list[ParamRecord] = field(default_factory=list)
    buffers: list[BufferRecord] = field(default_factory=list)
    inputs: list[InputRecord] = field(default_factory=list)
    constants: list[ConstantRecord] = field(default_factory=list)
    reads: list[ReadRecord] = field(default_factory=list)
    outputs: list[OutputRecord] = field(default_factory=list)
    output: Any = None
    failure: Failure | None = None
    timing: Timing = field(default_factory=Timing)
    audit: Audit | None = None
    saved: dict[int, int | None] | None = None
    finite: dict[int, str] | None = None
    notes: list[str] = field(default_factory=list)
    contexts: dict[int, CallContext] = field(default_factory=dict)
    edits: list[EditRecord] = field(default_factory=list)
    edited: dict[int, list[int]] = field(default_factory=dict)
    layers: list[int] | None = None
    fake: bool = False
    input_text: str = ""
    derived: Derived | None = None
    _calls: list[CallRecord] | None = None

    @property
    def calls(self) -> list[CallRecord]:
        """The recorded calls in order; the log's tuples under their field names."""
        if self._calls is None:
            self._calls = [CallRecord._make(entry) for entry in self.log]
        return self._calls

    def drop_graph(self) -> None:
        """Let go of the autograd nodes, once what they saved is read."""
        place = CallRecord._fields.index("grad_fn")
        self.log = [(*entry[:place], None, *entry[place + 1 :]) for entry in self.log]
        self._calls = None


def records_in(value: Any, path: Path = ()) -> list[tuple[Path, TensorRecord]]:
    """Every tensor record inside an argument template, with its path."""
    found: list[tuple[Path, TensorRecord]] = []
    if isinstance(value, TensorRecord):
        found.append((path, value))
    else:
        _collect(value, path, found)
    return found


def _collect(value: Any, path: Path, found: list[tuple[Path, TensorRecord]]) -> None:
    items: Any = ()
    if isinstance(value, (tuple, list)):
        items = enumerate(value)
    elif isinstance(value, dict):
        items = value.items()
    elif isinstance(value, slice):
        items = (("start", value.start), ("stop", value.stop), ("step", value.step))
    for key, item in items:
        if isinstance(item, TensorRecord):
            found.append(((*path, key), item))
        elif item.__class__ not in _LEAVES:
            _collect(item, (*path, key), found)


_LEAVES = frozenset({int, float, str, bool, type(None), complex})
