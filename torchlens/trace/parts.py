"""What a trace is made of besides ops: edges, parameters, buffers, modules and their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torchlens.capture.arguments import filled
from torchlens.capture.recording import BufferRecord, ModuleCall, ModuleRecord, ParamRecord, Path, Site
from torchlens.capture.values import read
from torchlens.trace.quantities import Bytes, Count

if TYPE_CHECKING:
    import torch

    from torchlens.trace.op import Op
    from torchlens.trace.trace import Trace


class Edge(NamedTuple):
    """A tensor that goes from ``parent`` to ``child``.

    ``path`` is where it stands among the child's arguments (``(0, 1)`` second positional,
    ``(1, "mask")`` keyword ``mask``; deeper for containers), ``out_index`` which output of the parent
    it is.  ``write`` marks a dependence on an in-place write through another view of the same memory.
    """

    parent: Op
    child: Op
    path: Path
    out_index: int
    write: bool = False

    @property
    def slot(self) -> str:
        """The argument as people write it: ``0``, ``mask``, ``0[2]``."""
        if len(self.path) < 2:
            return ""
        head, *rest = self.path[1:]
        return str(head) + "".join(f"[{step!r}]" for step in rest)


class _Held:
    """What parameters and buffers have in common: a tensor of the model under its addresses."""

    __slots__ = ("_record", "_trace", "index")

    def __init__(self, trace: Trace, index: int, record: ParamRecord | BufferRecord) -> None:
        self._trace = trace
        self._record = record
        self.index = index

    @property
    def address(self) -> str:
        return self._record.addresses[0]

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(self._record.addresses)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._record.facts.shape if self._record.facts is not None else ()

    @property
    def dtype(self) -> torch.dtype | None:
        return self._record.facts.dtype if self._record.facts is not None else None

    @property
    def device(self) -> torch.device | None:
        return self._record.facts.device if self._record.facts is not None else None

    @property
    def bytes(self) -> Bytes:
        return Bytes(self._record.facts.nbytes if self._record.facts is not None else 0)


class Param(_Held):
    """A parameter of the model, shared ones once.

    Attributes
    ----------
    address : str
        First dotted address; ``addresses`` has all of them.
    shape, dtype, device, bytes, numel
        As of the tensor.
    trainable : bool
        Whether it required a gradient.
    """

    __slots__ = ()
    _record: ParamRecord

    @property
    def numel(self) -> Count:
        total = 1
        for size in self.shape:
            total *= size
        return Count(total if self._record.facts is not None else 0)

    @property
    def trainable(self) -> bool:
        return self._record.trainable

    @property
    def registered(self) -> bool:
        return self._record.registered

    @property
    def value(self) -> torch.Tensor | None:
        """The parameter when the run began, if values were kept and it was not changed since."""
        return read(self._record.record)

    @property
    def ops(self) -> list[Op]:
        """The ops that read it."""
        return [op for op in self._trace.ops if self in op.params]

    def __repr__(self) -> str:
        kind = "trainable" if self.trainable else "frozen"
        return f"Param({self.address!r}, {self.shape}, {kind})"


class Buffer(_Held):
    """A registered buffer of the model; its value in the run is at the ops of kind ``"buffer"``."""

    __slots__ = ()
    _record: BufferRecord

    @property
    def persistent(self) -> bool:
        return self._record.persistent

    @property
    def value(self) -> torch.Tensor | None:
        """The buffer when the run began, if values were kept."""
        return read(self._record.record)

    @property
    def ops(self) -> list[Op]:
        """The ops that read it."""
        return [c for op in self._trace.ops if op.kind == "buffer" and op.buffer is self for c in op.children]

    def __repr__(self) -> str:
        return f"Buffer({self.address!r}, {self.shape})"


class Call:
    """One call of one module.

    Attributes
    ----------
    module : Module
    pass_index : int
        1 for the module's first call.
    parent : Call or None
        The module call around it.
    failed : bool
        Whether an exception left it.
    opaque : bool
        Whether its inside cannot be seen (a scripted module).
    """

    __slots__ = ("_record", "_trace", "index", "module", "pass_index")

    def __init__(self, trace: Trace, index: int, record: ModuleCall, module: Module, pass_index: int) -> None:
        self._trace = trace
        self._record = record
        self.index = index
        self.module = module
        self.pass_index = pass_index

    @property
    def label(self) -> str:
        """Address, with ``:pass`` where the module ran several times."""
        address = self.module.address or self.module.class_name
        return address if len(self.module.calls) < 2 else f"{address}:{self.pass_index}"

    @property
    def parent(self) -> Call | None:
        return self._trace.calls[self._record.parent] if self._record.parent >= 0 else None

    @property
    def failed(self) -> bool:
        return self._record.failed

    @property
    def opaque(self) -> bool:
        return self._record.opaque

    @property
    def ops(self) -> list[Op]:
        """Every op that ran during this call, in order."""
        return self._trace.recorded_ops(self._record.first_op, self._record.end_op)

    @property
    def children(self) -> list[Call]:
        """The module calls made directly by this one."""
        return self._trace.child_calls(self.index)

    @property
    def site(self) -> Site:
        """The chain of call sites from the call out to the forward around it."""
        return self._record.site

    @property
    def output_records(self) -> Any:
        """What the call returned, with records in place of tensors."""
        return self._record.output

    @property
    def inputs(self) -> Any:
        """``(args, kwargs)`` of the call with values in place of tensors, ``None`` for unknown ones."""
        return filled(self._record.inputs, read)

    @property
    def out(self) -> Any:
        """What the call returned."""
        return filled(self._record.output, read)

    def __repr__(self) -> str:
        return f"Call({self.label!r}, {len(self.ops)} ops)"


class Module:
    """One module of the model.

    Attributes
    ----------
    address : str
        First dotted address, ``""`` for the model itself; ``addresses`` has all of them.
    class_name : str
    calls : list of Call
    ops : list of Op
        Every op of every call.
    params, buffers : list
        Those registered directly on it.
    """

    __slots__ = ("_record", "_trace", "calls", "index")

    def __init__(self, trace: Trace, index: int, record: ModuleRecord) -> None:
        self._trace = trace
        self._record = record
        self.index = index
        self.calls: list[Call] = []

    @property
    def address(self) -> str:
        return self._record.addresses[0]

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(self._record.addresses)

    @property
    def class_name(self) -> str:
        return self._record.class_name

    @property
    def registered(self) -> bool:
        return self._record.registered

    @property
    def training(self) -> bool:
        return self._record.training

    @property
    def num_passes(self) -> int:
        return len(self.calls)

    @property
    def ops(self) -> list[Op]:
        return [op for call in self.calls for op in call.ops]

    @property
    def params(self) -> list[Param]:
        return [self._trace.params[i] for i in self._record.params]

    @property
    def buffers(self) -> list[Buffer]:
        return [self._trace.buffers[i] for i in self._record.buffers]

    @property
    def out(self) -> Any:
        """What its only call returned; with several calls read ``.calls[i].out``."""
        from torchlens.errors import AmbiguousReadError

        if len(self.calls) != 1:
            raise AmbiguousReadError(
                f"Module {self.address!r} was called {len(self.calls)} times. Read .calls[i].out instead."
            )
        return self.calls[0].out

    def __str__(self) -> str:
        return self.address

    def __repr__(self) -> str:
        return f"Module({self.address!r}, {self.class_name}, calls={len(self.calls)})"
