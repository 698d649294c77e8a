"""The audit: every ATen dispatch that ran outside of a recorded call."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from torchlens.capture.recorder import Recorder


class DispatchAudit(TorchDispatchMode):
    """Counts dispatches of the traced thread that no recorded call accounts for."""

    supports_higher_order_operators = True

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.outside: Counter[str] = Counter()
        self._recorder = recorder

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self._recorder.depth == 0:
            self.outside[str(func)] += 1
        return func(*args, **(kwargs or {}))
