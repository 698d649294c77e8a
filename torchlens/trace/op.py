"""Ops, and layers: the ops that are passes of one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from torchlens.capture.arguments import filled
from torchlens.capture.callsite import Location, location
from torchlens.capture.facts import TensorFacts
from torchlens.capture.functions import type_of
from torchlens.capture.recording import CallRecord, TensorRecord
from torchlens.capture.values import read
from torchlens.errors import AmbiguousReadError
from torchlens.trace.quantities import Bytes, Count, Duration, Flops

if TYPE_CHECKING:
    import torch

    from torchlens.trace.parts import Buffer, Call, Edge, Module, Param
    from torchlens.trace.trace import Trace

Kind = Literal["call", "input", "output", "buffer", "constant"]


class Op:
    """One recorded call, or a place where tensors enter or leave the graph.

    Attributes
    ----------
    kind : {"call", "input", "output", "buffer", "constant"}
    label : str
        ``type_k_n``, with ``:pass`` where its layer has several passes.
    type : str
        The function's plain name (``add`` for ``+``, ``add_`` and ``__iadd__``).
    func_name : str
        The function's own name.
    step : int
        Position in ``trace.ops``.
    inputs : tuple of Edge
        One per tensor argument, with its slot and the output index it comes from.
    """

    __slots__ = ("_trace", "address", "children_edges", "inputs", "kind", "layer", "pass_index", "record",
                 "records", "step", "type")  # fmt: skip

    def __init__(
        self,
        trace: Trace,
        *,
        step: int,
        kind: Kind,
        records: tuple[TensorRecord, ...],
        record: CallRecord | None = None,
        address: str = "",
    ) -> None:
        self._trace = trace
        self.step = step
        self.kind: Kind = kind
        self.records = records
        self.record = record
        self.address = address
        self.type = kind if record is None else type_of(record.name)
        self.inputs: tuple[Edge, ...] = ()
        self.children_edges: list[Edge] = []
        self.layer: Layer
        self.pass_index = 1

    # -- names ---------------------------------------------------------------------------------

    @property
    def label(self) -> str:
        name = self.layer.label
        return name if self.layer.num_passes < 2 else f"{name}:{self.pass_index}"

    @property
    def func_name(self) -> str:
        return self.record.name if self.record is not None else self.kind

    @property
    def num_passes(self) -> int:
        return self.layer.num_passes

    # -- graph ---------------------------------------------------------------------------------

    @property
    def parents(self) -> list[Op]:
        """The ops whose outputs it reads, each once, in argument order."""
        return list(dict.fromkeys(edge.parent for edge in self.inputs))

    @property
    def children(self) -> list[Op]:
        """The ops that read its outputs, each once, in execution order."""
        return list(dict.fromkeys(edge.child for edge in self.children_edges))

    @property
    def params(self) -> list[Param]:
        """The parameters it reads, directly or as views of them."""
        return self._trace.params_of(self)

    @property
    def buffer(self) -> Buffer | None:
        """The buffer that an op of kind ``"buffer"`` stands for."""
        return self._trace.buffers[self.records[0].index] if self.kind == "buffer" else None

    @property
    def is_orphan(self) -> bool:
        """Whether no path joins it to any input or output."""
        return self._trace.is_orphan(self)

    @property
    def module(self) -> Module | None:
        """The innermost module it ran in; ``None`` outside of any."""
        call = self.call
        return call.module if call is not None else None

    @property
    def call(self) -> Call | None:
        """The innermost module call it ran in."""
        if self.record is None or self.record.call < 0:
            return None
        return self._trace.calls[self.record.call]

    @property
    def modules(self) -> tuple[Module, ...]:
        """The modules around it, outermost first."""
        found: list[Module] = []
        call = self.call
        while call is not None:
            found.append(call.module)
            call = call.parent
        return tuple(reversed(found))

    @property
    def code(self) -> Location | None:
        """File, line and function of the user's code that made the call."""
        return location(self.full_site) if self.record is not None else None

    @property
    def full_site(self) -> tuple[Any, ...]:
        """The chain of call sites from the call out to where the model was called."""
        if self.record is None:
            return ()
        site, call = list(self.record.site), self.record.call
        calls = self._trace.recording.module_calls
        while call >= 0:
            site += calls[call].site
            call = calls[call].parent
        return tuple(site)

    # -- values --------------------------------------------------------------------------------

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments, with values in place of tensors (``None`` where not kept)."""
        return tuple(filled(self.record.args, read)) if self.record is not None else ()

    @property
    def kwargs(self) -> dict[str, Any]:
        """Keyword arguments, likewise."""
        return dict(filled(self.record.kwargs, read)) if self.record is not None else {}

    @property
    def out(self) -> Any:
        """The output as it was when the call returned; a tuple for several; ``None`` if not kept."""
        if self.record is not None and isinstance(self.record.out, TensorRecord):
            return read(self.record.out)
        values = tuple(read(record) for record in self.records)
        return values[0] if len(values) == 1 and self.kind != "call" else (values or None)

    @property
    def lost(self) -> str | None:
        """Why a value that was to be kept is not there, if so."""
        for record in self.records:
            read(record)
        return next((record.lost for record in self.records if record.lost), None)

    @property
    def facts(self) -> tuple[TensorFacts | None, ...]:
        """Facts of each output tensor."""
        return tuple(record.facts for record in self.records)

    @property
    def shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """Shape of each output tensor."""
        return tuple(f.shape if f is not None else None for f in self.facts)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the first output tensor."""
        found = self.records[0].facts if self.records else None
        return found.shape if found is not None else None

    @property
    def dtype(self) -> torch.dtype | None:
        """Dtype of the first output tensor."""
        found = self.records[0].facts if self.records else None
        return found.dtype if found is not None else None

    @property
    def device(self) -> torch.device | None:
        """Device of the first output tensor."""
        found = self.records[0].facts if self.records else None
        return found.device if found is not None else None

    # -- costs ---------------------------------------------------------------------------------

    @property
    def bytes(self) -> Bytes | None:
        """Memory that its outputs take; 0 where they alias an input (see ``is_alias``)."""
        return self._trace.facts_table.bytes_of(self)

    @property
    def is_alias(self) -> bool:
        """Whether all of its outputs share memory with its inputs."""
        return self._trace.facts_table.is_alias(self)

    @property
    def func_duration(self) -> Duration | None:
        """Seconds that the call took; ``None`` if not timed."""
        return self._trace.facts_table.duration_of(self)

    @property
    def func_durations(self) -> tuple[Duration, ...]:
        """Seconds of each timed run; ``func_duration`` is their median."""
        return self._trace.facts_table.durations_of(self)

    @property
    def flops(self) -> Flops | None:
        """Floating point operations of the call; ``None`` if no rule knows."""
        return self._trace.facts_table.flops_of(self)

    @property
    def macs(self) -> Count | None:
        """Multiply-adds of its matrix products and convolutions; ``None`` if no rule knows."""
        return self._trace.facts_table.macs_of(self) if self.kind == "call" else None

    @property
    def saved_for_backward(self) -> Bytes | None:
        """Bytes that autograd keeps for this call; ``None`` if unknown or without gradients."""
        return self._trace.facts_table.saved_of(self)

    @property
    def nonfinite(self) -> str | None:
        """``"finite" "nan" "+inf" "-inf" "mixed"``, or ``None`` if not checked."""
        return self._trace.facts_table.nonfinite_of(self)

    @property
    def branch_test(self) -> bool | None:
        """Outcome, if Python branched on its value."""
        return self._trace.facts_table.branch_test_of(self)

    @property
    def edit(self) -> Any:
        """The edit that hit it, if one did."""
        return self._trace.edit_of(self)

    @property
    def failed(self) -> bool:
        """Whether this call raised."""
        return self.record is not None and self.record.failed

    def __repr__(self) -> str:
        shape = ", ".join(str(s) for s in self.shapes)
        return f"Op({self.label!r}, {shape})" if shape else f"Op({self.label!r})"


_PER_PASS_NAMES = """
    args bytes call children code device dtype facts flops func_duration func_durations inputs lost
    macs nonfinite out parents saved_for_backward shape shapes step pass_index branch_test edit
    is_alias full_site kwargs failed is_orphan buffer address records record
"""
_PER_PASS = frozenset(_PER_PASS_NAMES.split())


class Layer:
    """One place in the model: the ops that are passes of one another.

    With a single pass every name of :class:`Op` reads through; with several, a read that differs by
    pass raises and names ``.ops[i]``.
    """

    __slots__ = ("_trace", "label", "ops")

    def __init__(self, trace: Trace, label: str, ops: list[Op]) -> None:
        self._trace = trace
        self.label = label
        self.ops = ops

    @property
    def type(self) -> str:
        return self.ops[0].type

    @property
    def kind(self) -> Kind:
        return self.ops[0].kind

    @property
    def func_name(self) -> str:
        return self.ops[0].func_name

    @property
    def module(self) -> Module | None:
        """The module that its passes run in."""
        return self.ops[0].module

    @property
    def modules(self) -> tuple[Module, ...]:
        """The modules around it, outermost first."""
        return self.ops[0].modules

    @property
    def num_passes(self) -> int:
        return len(self.ops)

    @property
    def params(self) -> list[Param]:
        """The parameters that any pass reads."""
        return list(dict.fromkeys(p for op in self.ops for p in op.params))

    @property
    def total_func_duration(self) -> Duration | None:
        """Sum over passes; ``None`` if a pass is not timed."""
        values = [op.func_duration for op in self.ops]
        return None if any(v is None for v in values) else Duration(sum(v for v in values if v is not None))

    @property
    def total_bytes(self) -> Bytes | None:
        """Sum over passes."""
        values = [op.bytes for op in self.ops]
        return None if any(v is None for v in values) else Bytes(sum(v for v in values if v is not None))

    @property
    def total_flops(self) -> Flops | None:
        """Sum over passes."""
        values = [op.flops for op in self.ops]
        return None if any(v is None for v in values) else Flops(sum(v for v in values if v is not None))

    @property
    def total_macs(self) -> Count | None:
        """Sum over passes."""
        values = [op.macs for op in self.ops]
        return None if any(v is None for v in values) else Count(sum(v for v in values if v is not None))

    @property
    def total_saved_for_backward(self) -> Bytes | None:
        """Sum over passes."""
        values = [op.saved_for_backward for op in self.ops]
        return None if any(v is None for v in values) else Bytes(sum(v for v in values if v is not None))

    def __getattr__(self, name: str) -> Any:
        if name not in _PER_PASS:
            raise AttributeError(f"Layer has no attribute {name!r}.")
        if len(self.ops) > 1:
            raise AmbiguousReadError(
                f"Layer {self.label!r} has {len(self.ops)} passes, and {name!r} differs by pass. "
                f"Read .ops[i].{name} instead."
            )
        return getattr(self.ops[0], name)

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __repr__(self) -> str:
        passes = f", passes={self.num_passes}" if self.num_passes > 1 else ""
        return f"Layer({self.label!r}{passes})"
