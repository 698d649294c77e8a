"""Whether values are finite, where values that are not first appear, and which op made them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

from torchlens._collector import rare_collections
from torchlens._torch_compat import no_torch_function, version_of
from torchlens.capture.values import read

if TYPE_CHECKING:
    from torchlens.capture.recording import TensorRecord
    from torchlens.trace.op import Op
    from torchlens.trace.parts import Param
    from torchlens.trace.trace import Trace

INF = float("inf")
_UNREADABLE = (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError)


def status_of(tensor: torch.Tensor) -> str | None:
    """Status of one tensor: ``"finite" "nan" "+inf" "-inf"``, or ``"mixed"`` for several kinds.

    Whole numbers and booleans are finite.  A complex number is what its parts are; a sparse tensor what
    its stored values are.  ``None`` where there are no values to look at (meta and fake tensors, and
    inside ``torch.func`` transforms): not checked.  Finite tensors, the usual case, cost one reduction.
    """
    if not tensor.dtype.is_floating_point and not tensor.dtype.is_complex:
        return "finite" if tensor.device.type != "meta" else None
    if tensor.device.type == "meta":
        return None
    try:
        with no_torch_function():
            return joined([_dense_status(part) for part in _dense_parts(tensor.detach())])
    except _UNREADABLE:
        return None


def joined(statuses: Iterable[str | None]) -> str | None:
    """Status of several tensors together; ``None`` if one is unknown and no other is bad."""
    seen = set(statuses)
    bad = seen - {"finite", None}
    if len(bad) > 1:
        return "mixed"
    if bad:
        return bad.pop()
    return None if None in seen else "finite"


def _dense_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The dense real tensors that hold a tensor's values."""
    if tensor.is_quantized:
        return []
    if tensor.is_nested:
        return [tensor.values()] if tensor.layout == torch.jagged else list(tensor.unbind())
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce().values()
    elif tensor.layout != torch.strided:
        tensor = tensor.values()
    elif 0 in tensor.stride():  # an expanded tensor repeats what it holds; once is enough
        tensor = tensor[tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.stride())]
    if tensor.dtype.is_complex:
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.dtype.itemsize == 1:
        tensor = tensor.to(torch.float32)
    return [tensor]


def _dense_status(tensor: torch.Tensor) -> str:
    if tensor.numel() == 0:
        return "finite"
    low, high = tensor.aminmax()
    least, most = float(low), float(high)
    if least == least and most == most:
        kinds = {kind for kind, hit in (("-inf", least == -INF), ("+inf", most == INF)) if hit}
        # A tensor of one infinity alone has it at both ends.
        kinds |= {"+inf"} if least == INF else {"-inf"} if most == -INF else set()
    else:
        kinds = {"nan"}
        kinds |= {"+inf"} if bool((tensor == INF).any()) else set()
        kinds |= {"-inf"} if bool((tensor == -INF).any()) else set()
    if len(kinds) > 1:
        return "mixed"
    return kinds.pop() if kinds else "finite"


@rare_collections()
def nonfinite(trace: Trace) -> list[str | None]:
    """Status by position in ``trace.ops``; ``None`` where no value was looked at.

    Statuses taken while running go first, kept values second.
    """
    return Statuses(trace).of_ops()


def producers(trace: Trace) -> list[Op]:
    """The ops with an output that is not finite though everything they read was.

    An op whose inputs are not all known is not among them.
    """
    statuses = Statuses(trace)
    bad = {op.step for op, s in zip(trace.ops, statuses.of_ops(), strict=True) if s not in ("finite", None)}
    return [op for op in trace.ops if op.step in bad and op.kind == "call" and statuses.reads_finite(op)]


def first(trace: Trace) -> Op | None:
    """The first op in execution order with an output that is not finite."""
    statuses = nonfinite(trace)
    return next((op for op, s in zip(trace.ops, statuses, strict=True) if s not in ("finite", None)), None)


def first_source(trace: Trace) -> Op | Param | None:
    """Where the first value that is not finite comes from: an op, or a parameter that the op reads."""
    op = first(trace)
    if op is None or op.kind != "call":
        return op
    statuses = Statuses(trace)
    return next((p for p in op.params if statuses.of_param(p) not in ("finite", None)), op)


class Statuses:
    """Statuses of the tensors of one trace, each looked at once."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._taken = trace.recording.finite
        self._known: dict[int, str | None] = {}
        self._ops: list[str | None] | None = None

    def of_ops(self) -> list[str | None]:
        if self._ops is None:
            self._ops = []
            for op in self._trace.ops:
                self._ops.append(self._of_op(op, self._ops))
        return self._ops

    def reads_finite(self, op: Op) -> bool:
        """Whether all tensors that an op reads are known to be finite."""
        ops = self.of_ops()
        for edge in op.inputs:
            parent = edge.parent
            status = ops[parent.step]
            if status != "finite" and edge.out_index < len(parent.records) > 1:
                status = self.of_record(parent.records[edge.out_index])
            if status != "finite":
                return False
        return all(self.of_param(param) == "finite" for param in op.params)

    def of_param(self, param: Param) -> str | None:
        return self.of_record(self._trace.recording.params[param.index].record)

    def _of_op(self, op: Op, earlier: list[str | None]) -> str | None:
        taken = self._taken.get(self._trace.call_index(op)) if self._taken and op.kind == "call" else None
        if taken is not None or not op.records:
            return taken
        status = joined([self.of_record(record) for record in op.records])
        if status is None and op.kind == "output" and op.inputs and len(op.inputs[0].parent.records) == 1:
            return earlier[op.inputs[0].parent.step]
        return status

    def of_record(self, record: TensorRecord) -> str | None:
        """Status of one tensor state."""
        key = id(record)
        if key not in self._known:
            self._known[key] = self._look(record)
        return self._known[key]

    @staticmethod
    def _look(record: TensorRecord) -> str | None:
        if record.history is not None and record.history.status is not None:
            return record.history.status
        value = read(record)
        if value is None and record.source != "op":
            value = _live(record)
        return None if value is None else status_of(value)


def _live(record: TensorRecord) -> torch.Tensor | None:
    """The tensor of an input or a weight that was not kept, if it is still as it was."""
    tensor = record.weak() if record.weak is not None else None
    if tensor is None or record.version is None:
        return None
    with no_torch_function():
        return tensor.detach() if version_of(tensor) == record.version else None
