"""Compiled code runs eagerly while it is recorded, so that its ops are seen."""

from __future__ import annotations

from typing import Any

import torch

from torchlens._torch_compat import dynamo_loaded


class EagerStance:
    """Tells the compiler, if it is loaded, to step aside; loads nothing by itself.

    Importing the compiler takes seconds and replaces ``torch.manual_seed``, so it is only asked once
    the user's own code has imported it.
    """

    def __init__(self) -> None:
        self._stance: Any = None

    def ensure(self) -> None:
        """Switch to eager if the compiler is there and was not told yet."""
        if self._stance is None and dynamo_loaded() and hasattr(torch.compiler, "set_stance"):
            self._stance = torch.compiler.set_stance("force_eager")
            self._stance.__enter__()

    def release(self) -> None:
        """Give the compiler its former stance back."""
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None
