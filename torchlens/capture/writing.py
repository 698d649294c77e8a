"""In-place writes: what is saved before them, and what depends on them afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from torchlens._torch_compat import no_torch_function, version_of
from torchlens.capture.arguments import flat_tensors
from torchlens.capture.functions import Plan
from torchlens.capture.log import CallLog
from torchlens.capture.recording import Path, TensorRecord
from torchlens.capture.regions import Region, region_of
from torchlens.capture.writers import GEOMETRY, WHOLE, Target, keyword_targets


class WriteLog(CallLog):
    """A log that keeps values and dependences right across writes."""

    def _guard(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> list[Target] | None:
        """Save what the coming call overwrites; its targets, or ``None`` if it writes nothing."""
        kwargs = kwargs or {}
        targets = list(plan.writer(args, kwargs)) if plan.writer is not None else []
        if kwargs and ("out" in kwargs or "inplace" in kwargs):
            targets += keyword_targets(args, kwargs)
        if not targets:
            return None
        with no_torch_function(), torch.no_grad():
            for target in targets:
                if target.index is GEOMETRY or "out" in kwargs:
                    self.values.freeze(target.tensor)
                    self.sources.watch(target.tensor)
                if target.index is not GEOMETRY:
                    self.values.before_write(target.tensor, target.index, written_region(target))
        return [target for target in targets if target.index is not GEOMETRY] or None

    def _after_write(
        self,
        targets: list[Target],
        versions: list[tuple[torch.Tensor, int | None]] | None,
        outs: tuple[TensorRecord, ...],
        step: int,
    ) -> None:
        with no_torch_function():
            for tensor, before in versions or ():
                if before is not None and version_of(tensor) != before and not targets:
                    self.values.lose(tensor, "overwritten by a call that does not say that it writes")
                    targets = [*targets, Target(tensor)]
            for target in targets:
                known = self.sources.peek(target.tensor)
                if known is None or known.index != step or known.source != "op":
                    known = self._register(target.tensor, step, 0, "")
                    known.slot = outs[0].slot if outs else 0
                self.sources.wrote(target.tensor, written_region(target), step, known)

    @staticmethod
    def _versions(
        args: tuple[Any, ...], kwargs: dict[str, Any] | None
    ) -> list[tuple[torch.Tensor, int | None]]:
        with no_torch_function():
            return [(tensor, version_of(tensor)) for tensor in flat_tensors((args, kwargs))]

    def _earlier_writes(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> tuple[Any, ...]:
        """Writes through other aliases that the arguments' memory depends on."""
        found: list[Any] = []
        with no_torch_function():
            for path, tensor in _paths((args, kwargs or {}), ()):
                found += [(path, write, full) for write, full in self.sources.renew(tensor)]
        return tuple(found)


def written_region(target: Target) -> Region | None:
    """Bytes that a write touches: of the indexed part for plain indices, of the whole tensor else."""
    if target.index is WHOLE or not _is_basic(target.index):
        return region_of(target.tensor)
    try:
        return region_of(target.tensor.detach()[target.index])
    except (IndexError, TypeError, RuntimeError):
        return region_of(target.tensor)


def _is_basic(index: Any) -> bool:
    if isinstance(index, tuple):
        return all(_is_basic(item) for item in index)
    if isinstance(index, slice):
        return not any(isinstance(x, torch.Tensor) for x in (index.start, index.stop, index.step))
    return index is None or index is ... or (isinstance(index, int) and not isinstance(index, bool))


def _paths(value: Any, path: Path) -> Iterator[tuple[Path, torch.Tensor]]:
    """Every tensor of an argument structure with its path; ``(args, kwargs)`` at the top."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from _paths(item, (*path, position))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, (*path, key))
