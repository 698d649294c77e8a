"""What differs between two runs of a model: the largest absolute change of every op's value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from torchlens._torch_compat import no_torch_function
from torchlens.capture.recording import TensorRecord
from torchlens.capture.values import read

if TYPE_CHECKING:
    from torchlens.trace.op import Op

CHUNK = 1 << 20
"""Elements compared at a time, so that no copy of a large value in double precision is made."""


def largest_change(op: Op, other: Op) -> float | None:
    """Largest absolute difference of two ops' values; ``None`` if there is none to compare.

    Equal infinities and NaN in the same places count as no change, NaN against a number as infinite.
    """
    if len(op.records) != len(other.records) or not op.records:
        return None
    changes = [record_change(a, b) for a, b in zip(op.records, other.records)]
    known = [change for change in changes if change is not None]
    return max(known) if len(known) == len(changes) else None


def record_change(a: TensorRecord, b: TensorRecord) -> float | None:
    """The same for two records; states that share their record are not looked at."""
    if a is b:
        return 0.0 if a.kept is not None else None
    first, second = read(a), read(b)
    if first is None or second is None or first.shape != second.shape:
        return None
    if first.device != second.device:
        second = second.to(first.device)
    with no_torch_function(), torch.no_grad():
        return _difference(first, second)


def _difference(a: torch.Tensor, b: torch.Tensor) -> float:
    if a.numel() == 0:
        return 0.0
    if a.layout != torch.strided or b.layout != torch.strided or a.is_quantized or b.is_quantized:
        return _difference(_plain(a), _plain(b))
    if a.dtype == b.dtype and torch.equal(a, b):
        return 0.0
    first, second = a.reshape(-1), b.reshape(-1)
    return max(_gap(first[i : i + CHUNK], second[i : i + CHUNK]) for i in range(0, first.numel(), CHUNK))


def _gap(a: torch.Tensor, b: torch.Tensor) -> float:
    wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
    first, second = a.to(wide), b.to(wide)
    same = (first == second) | (first.isnan() & second.isnan())
    gap = (first - second).abs().masked_fill(same, 0.0)
    return float(gap.nan_to_num(nan=float("inf"), posinf=float("inf")).max())


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_quantized:
        return tensor.dequantize()
    return tensor.to_dense() if tensor.layout != torch.strided else tensor
