"""Torch's functions by name, and back: only those that compute on tensors, and nothing else.

A file names functions; what it may name is a fixed set, so that no file can have anything run that
opens files or loads code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch.overrides import get_overridable_functions, resolve_name

from torchlens.storage.opaque import Absent

_FACTORIES = """
    arange as_strided as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye
    fill full hamming_window hann_window kaiser_window linspace logspace normal ones rand rand_like randint
    randint_like randn randn_like randperm range scalar_tensor sparse_coo_tensor sparse_csr_tensor
    sparse_compressed_tensor tensor tril_indices triu_indices vander zeros
"""
_METHODS = """
    new new_empty new_empty_strided new_full new_ones new_tensor new_zeros to_padded_tensor to_sparse_bsc
    to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr unflatten
"""
_FUNCTIONALS = """
    grouped_mm hardsigmoid hardswish scaled_grouped_mm scaled_mm sigmoid tanh upsample upsample_bilinear
    upsample_nearest
"""
_FILLS = """
    constant_ dirac_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_ sparse_ trunc_normal_
    uniform_ xavier_normal_ xavier_uniform_ zeros_
"""
_NOT_COMPUTING = frozenset(["torch.Tensor.apply_", "torch.Tensor.map_", "torch.Tensor.map2_",
                            "torch.Tensor.module_load", "torch.Tensor.__setstate__",
                            "torch.Tensor.__reduce_ex__"])  # fmt: skip


@lru_cache(maxsize=1)
def by_name() -> dict[str, Any]:
    """Every function that a file may name."""
    found: list[Any] = [f for functions in get_overridable_functions().values() for f in functions]
    for owner, names in (
        (torch, _FACTORIES),
        (torch.Tensor, _METHODS),
        (torch.nn.functional, _FUNCTIONALS),
        (torch.nn.init, _FILLS),
        (torch.fft, "fftfreq rfftfreq"),
    ):
        found += [getattr(owner, name) for name in names.split() if hasattr(owner, name)]
    named = ((resolve_name(function), function) for function in found)
    return {name: function for name, function in named if name is not None and name not in _NOT_COMPUTING}


@lru_cache(maxsize=1)
def _names() -> dict[Any, str]:
    return {function: name for name, function in by_name().items()}


def describe(function: Callable[..., Any] | None) -> list[str | None] | None:
    """Full name (``None`` if it cannot be found again), module and plain name of a function."""
    if function is None:
        return None
    name: str | None
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        name = f"ops.{function}"
    else:
        name = _names().get(function) if _hashable(function) else None
    module = getattr(function, "__module__", None)
    plain = getattr(function, "__name__", type(function).__name__)
    return [name, module if isinstance(module, str) else None, str(plain)]


def find(name: str | None, module: str | None, plain: str) -> Any:
    """The function of that name, or a stand-in that cannot be called."""
    found = None
    if name is not None:
        found = _operator(name[4:]) if name.startswith("ops.") else by_name().get(name)
    return Absent(module, plain) if found is None else found


def _operator(name: str) -> Any:
    """An operator of ATen that takes and gives tensors; others may do anything."""
    parts = name.split(".")
    if not 2 <= len(parts) <= 3 or parts[0] not in ("aten", "prims"):
        return None
    try:
        packet = getattr(getattr(torch.ops, parts[0]), parts[1])
        if not isinstance(packet, torch._ops.OpOverloadPacket):
            return None
        found = getattr(packet, parts[2]) if len(parts) == 3 else packet
        overloads = [found] if len(parts) == 3 else [getattr(packet, one) for one in packet.overloads()]
        safe = all(_on_tensors(overload._schema) for overload in overloads)
    except (AttributeError, RuntimeError):
        return None
    return found if safe else None


def _on_tensors(schema: Any) -> bool:
    sides = (schema.arguments, schema.returns)
    return all(any("Tensor" in str(item.type) for item in side) for side in sides)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
