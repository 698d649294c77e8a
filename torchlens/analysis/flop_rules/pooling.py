"""Pooling: one operation per element of each window.  Resampling: a product and a sum per sample."""

from __future__ import annotations

import math
from typing import Any

from torchlens.analysis.flop_rules.registry import Given, rule


def _volume(kernel: Any, dims: int) -> int:
    return int(kernel) ** dims if isinstance(kernel, int) else math.prod(int(k) for k in kernel)


_POOLS = [
    f"{kind}_pool{n}d{tail}"
    for n in (1, 2, 3)
    for kind, tail in (("max", ""), ("max", "_with_indices"), ("avg", ""))
]


@rule(*_POOLS)
def _pool(given: Given) -> int:
    dims = next(n for n in (1, 2, 3) if f"pool{n}d" in given.name)
    return given.out_size * _volume(given.value(1, "kernel_size"), dims)


@rule("lp_pool1d", "lp_pool2d", "lp_pool3d")
def _lp_pool(given: Given) -> int:
    """A power and a sum per element of a window, a root per window."""
    dims = next(n for n in (1, 2, 3) if f"pool{n}d" in given.name)
    return given.out_size * (2 * _volume(given.value(2, "kernel_size"), dims) + 1)


@rule(
    *(f"adaptive_{kind}_pool{n}d{tail}" for n in (1, 2, 3) for kind, tail in
      (("avg", ""), ("max", ""), ("max", "_with_indices")))
)  # fmt: skip
def _adaptive_pool(given: Given) -> int:
    """Window ``i`` of ``n`` reaches from ``floor(i size / n)`` to ``ceil((i + 1) size / n)``."""
    dims = next(n for n in (1, 2, 3) if f"pool{n}d" in given.name)
    total = math.prod(given.out.shape[:-dims])
    for size, count in zip(given.shape(0, "input")[-dims:], given.out.shape[-dims:], strict=True):
        total *= sum(-(-(i + 1) * size // count) - i * size // count for i in range(count))
    return total


_TAPS = {"nearest": 0, "nearest-exact": 0, "linear": 2, "bilinear": 4, "bicubic": 16, "trilinear": 8}


@rule("interpolate", "upsample")
def _interpolate(given: Given) -> int:
    mode = given.value(3, "mode", "nearest")
    if mode == "area":
        return given.in_size
    return 2 * _TAPS[mode] * given.out_size


@rule("grid_sample", "grid_sampler")
def _grid_sample(given: Given) -> int:
    mode = given.value(2, "mode", "bilinear")
    taps = 8 if mode == "bilinear" and len(given.out.shape) == 5 else _TAPS[mode]
    return 2 * taps * given.out_size
