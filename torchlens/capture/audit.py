"""The audit: every ATen dispatch that ran outside of a recorded call."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from torchlens._torch_compat import DispatchMode

if TYPE_CHECKING:
    from torchlens.capture.recorder import Recorder


_MARKERS = frozenset({"aten.lift_fresh.default", "aten.is_pinned.default"})
"""Dispatches that compute nothing; a tensor that enters this way is counted as of unknown source."""


class DispatchAudit(DispatchMode):
    """Counts dispatches of the traced thread that no recorded call accounts for."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.outside: Counter[str] = Counter()
        self._recorder = recorder

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self._recorder.depth == 0 and str(func) not in _MARKERS:
            self.outside[str(func)] += 1
        return func(*args, **(kwargs or {}))
