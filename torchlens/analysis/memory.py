"""How much memory the outputs need at one time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace


def peak_bytes(trace: Trace) -> int:
    """Largest sum of outputs alive at one time, if each is freed after its last reader."""
    return 0
