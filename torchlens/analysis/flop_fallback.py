"""Counts for functions without a rule: the recorded call on tensors without memory, counted by torch."""

from __future__ import annotations

from typing import Any

import torch

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
    from torch.utils.flop_counter import FlopCounterMode

    try:
        args, kwargs = filled((call.args, call.kwargs), _meta)
        with torch.inference_mode(False), torch.no_grad(), FlopCounterMode(display=False) as counter:
            call.func(*args, **kwargs)
        total = counter.get_total_flops()
    except Exception:  # whatever a foreign function raises here, the count is unknown
        return None
    return Work(total // 2, total % 2) if total else None


def _meta(record: TensorRecord) -> torch.Tensor:
    known = record.facts
    if known is None or known.strides is None:
        raise LookupError("no shape")
    return torch.empty_strided(known.shape, known.strides, dtype=known.dtype, device="meta")
