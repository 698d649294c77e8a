"""Factorisations, solvers and Fourier transforms, by their leading terms.

Sources: Golub and Van Loan, *Matrix Computations*, for factorisations; ``5 n log2 n`` for a complex
transform of length ``n``, half of it for real data.
"""

from __future__ import annotations

import math

from torchlens.analysis.flop_rules.registry import Given, rule


def _square(given: Given) -> tuple[int, int]:
    """Number of matrices and their order."""
    shape = given.shape(0, "A", "input", "self")
    return math.prod(shape[:-2]), shape[-1]


@rule("cholesky", "cholesky_ex")
def _cholesky(given: Given) -> int:
    count, n = _square(given)
    return count * n**3 // 3


@rule("inv", "inverse", "inv_ex")
def _inverse(given: Given) -> int:
    count, n = _square(given)
    return count * 2 * n**3


@rule("det", "slogdet", "logdet", "lu_factor")
def _lu(given: Given) -> int:
    count, n = _square(given)
    return count * 2 * n**3 // 3


@rule("solve")
def _solve(given: Given) -> int:
    count, n = _square(given)
    return count * 2 * n**3 // 3 + 2 * n * given.out_size


@rule("solve_triangular", "triangular_solve")
def _solve_triangular(given: Given) -> int:
    return given.out_size * given.shape(0, "A", "self")[-1]


_TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


@rule(*_TRANSFORMS, *(f"{name}{tail}" for name in _TRANSFORMS[:4] for tail in ("2", "n")))
def _fourier(given: Given) -> int:
    given_shape, made = given.shape(0, "input"), given.out.shape
    full = given_shape if math.prod(given_shape) > math.prod(made) else made
    last = given.name[-1]
    dims = given.value(2, "dim", (-2, -1) if last == "2" else None if last == "n" else -1)
    chosen = range(len(full)) if dims is None else (dims,) if isinstance(dims, int) else dims
    length = math.prod(full[d] for d in chosen)
    real = any(kind in given.name for kind in ("rfft", "hfft"))
    return round(math.prod(full) * math.log2(max(length, 1)) * (2.5 if real else 5))
