"""Whether values are finite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace


def status_of(tensor: torch.Tensor) -> str:
    """Status of one tensor."""
    return "finite" if bool(torch.isfinite(tensor).all()) else "mixed"


def nonfinite(trace: Trace) -> list[str | None]:
    """Status by position in ``trace.ops``."""
    return [None] * len(trace.ops)
