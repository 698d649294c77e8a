"""Copies of kept values on memory that a replay may write, so that the recorded ones never change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from torchlens.capture.recording import TensorRecord


class Copies:
    """Fresh memory; sources of one group share it as they did in the run."""

    def __init__(self) -> None:
        self._storages: dict[int, torch.UntypedStorage] = {}

    def of(self, record: TensorRecord, value: torch.Tensor, group: int | None) -> torch.Tensor:
        """A copy of ``value`` with the geometry of its record; ``group`` names memory to share."""
        facts = record.facts
        if facts is None or facts.strides is None:
            return value.clone()
        count = facts.offset + 1 + sum((n - 1) * step for n, step in zip(facts.shape, facts.strides) if n)
        size = count * value.element_size()
        storage = self._storages.get(group) if group is not None else None
        if storage is None:
            storage = torch.empty(size, dtype=torch.uint8, device=value.device).untyped_storage()
        elif storage.nbytes() < size:
            storage.resize_(size)
        if group is not None:
            self._storages[group] = storage
        own = torch.empty(0, dtype=value.dtype, device=value.device)
        own.set_(storage, facts.offset, facts.shape, facts.strides)
        once = tuple(slice(0, 1) if step == 0 else slice(None) for step in facts.strides)
        own[once].copy_(value[once])
        return own


def cloned(value: Any) -> Any:
    """Arguments for a function that may write without saying so."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(cloned(item) for item in value)
    if isinstance(value, dict):
        return {key: cloned(item) for key, item in value.items()}
    return value


def with_generators(
    args: tuple[Any, ...], kwargs: dict[str, Any], fresh: Iterable[torch.Generator]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with each generator replaced by one in the recorded state."""
    states = iter(fresh)

    def given(value: Any) -> Any:
        return next(states) if isinstance(value, torch.Generator) else value

    return tuple(given(value) for value in args), {name: given(value) for name, value in kwargs.items()}


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors hold the same, NaN equal to itself."""
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
