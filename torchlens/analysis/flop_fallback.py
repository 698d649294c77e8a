"""Counts for functions without a rule: the recorded call on tensors without memory, counted by torch."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from torchlens._torch_compat import DispatchMode
from torchlens.analysis.flop_rules.registry import Work, from_torch
from torchlens.capture.arguments import filled
from torchlens.capture.recording import CallRecord, TensorRecord


class Fallback:
    """Asks ``torch.utils.flop_counter``, once for each function and arguments."""

    def __init__(self) -> None:
        self._known: dict[Any, Work | None] = {}

    def work_of(self, call: CallRecord) -> Work | None:
        """What torch counts for a call; ``None`` where it has no formula or the call needs values."""
        if not _harmless(call.func):
            return None
        key = (call.func, repr(filled((call.args, call.kwargs), _spelled)))
        if key not in self._known:
            self._known[key] = _counted(call)
        return self._known[key]


def _harmless(function: Any) -> bool:
    """Whether a function may be run once more: torch's own, and nothing that talks to other machines."""
    module = str(getattr(function, "__module__", None) or "torch")
    return from_torch(function) and not module.startswith("torch.distributed")


def _spelled(record: TensorRecord) -> str:
    known = record.facts
    return "?" if known is None else f"<{known.dtype} {known.shape} {known.layout}>"


def _counted(call: CallRecord) -> Work | None:
    try:
        args, kwargs = filled((call.args, call.kwargs), _meta)
        with torch.inference_mode(False), torch.no_grad(), _Counter() as counter:
            call.func(*args, **kwargs)
    except Exception:  # whatever a foreign function raises here, the count is unknown
        return None
    return Work(counter.flops // 2, counter.flops % 2) if counter.flops else None


class _Counter(DispatchMode):
    """Sums torch's own formulas over what a call does inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        out = func(*args, **named)
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **named, out_val=out)
        return out


def _meta(record: TensorRecord) -> torch.Tensor:
    known = record.facts
    if known is None or known.strides is None:
        raise LookupError("no shape")
    return torch.empty_strided(known.shape, known.strides, dtype=known.dtype, device="meta")
