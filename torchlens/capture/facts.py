"""What is known of a tensor without its values."""

from __future__ import annotations

from typing import NamedTuple

import torch

from torchlens._torch_compat import storage_key


class TensorFacts(NamedTuple):
    """Facts of a tensor; ``strides`` is ``None`` where the layout has none."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    nbytes: int
    strides: tuple[int, ...] | None
    offset: int
    layout: torch.layout
    storage: int | None


def facts_of(tensor: torch.Tensor) -> TensorFacts:
    """The facts of a live tensor of any layout."""
    strided = tensor.layout == torch.strided and not tensor.is_nested
    try:
        shape = tuple(int(n) for n in tensor.shape)
    except (RuntimeError, AttributeError, TypeError):  # a nested tensor has no single size
        shape = (tensor.size(0),)
    return TensorFacts(
        shape=shape,
        dtype=tensor.dtype,
        device=tensor.device,
        nbytes=_bytes_of(tensor, strided=strided),
        strides=tuple(tensor.stride()) if strided else None,
        offset=int(tensor.storage_offset()) if strided else 0,
        layout=tensor.layout,
        storage=storage_key(tensor),
    )


def _bytes_of(tensor: torch.Tensor, *, strided: bool) -> int:
    if strided:
        return tensor.numel() * tensor.element_size()
    if tensor.is_nested:
        return int(tensor.values().numel()) * tensor.element_size()
    if tensor.layout == torch.sparse_coo:
        return int(tensor._values().nbytes + tensor._indices().nbytes)
    parts = ("values", "crow_indices", "col_indices", "ccol_indices", "row_indices")
    total = 0
    for name in parts:
        try:
            total += int(getattr(tensor, name)().nbytes)
        except RuntimeError:
            continue
    return total
