"""Python branches on a tensor's value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Branch:
    """One truth value that Python read from a tensor."""

    op: Op | None
    outcome: bool


def branches(trace: Trace) -> list[Branch]:
    """Every branch in order."""
    return []
