"""The audit: every ATen dispatch that ran outside of a recorded call."""

from __future__ import annotations

import os
import sys
from collections import Counter
from types import FrameType
from typing import TYPE_CHECKING, Any

from torchlens._torch_compat import DispatchMode, no_torch_function

if TYPE_CHECKING:
    from torchlens.capture.recorder import Recorder


_TRANSFORMS = os.path.join("torch", "_functorch", "")
_MARKERS = frozenset({"aten.lift_fresh.default", "aten.is_pinned.default"})
"""Dispatches that compute nothing; a tensor that enters this way is counted as of unknown source."""


def _in_transform(frame: FrameType | None) -> bool:
    """Whether a ``torch.func`` transform itself moves its batch dimension into place."""
    return frame is not None and _TRANSFORMS in frame.f_code.co_filename


class DispatchAudit(DispatchMode):
    """Counts dispatches of the traced thread that no recorded call accounts for."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.outside: Counter[str] = Counter()
        self._recorder = recorder

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self._recorder.depth == 0 and str(func) not in _MARKERS and not _in_transform(sys._getframe(1)):
            self.outside[str(func)] += 1
        with no_torch_function():  # what comes from outside of recorded calls must not be recorded now
            return func(*args, **(kwargs or {}))
