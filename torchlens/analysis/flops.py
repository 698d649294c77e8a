"""Floating point operations of each call, from shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace


def flops(trace: Trace) -> list[int | None]:
    """FLOPs by position in ``trace.ops``."""
    return [None] * len(trace.ops)
