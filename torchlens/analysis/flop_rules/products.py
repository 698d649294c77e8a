"""Matrix products in every spelling.

``(m, k) @ (k, n)`` takes ``m k n`` multiply-adds.  A term added with fewer dimensions than the result is a
bias and costs one add per element; a term of full size is where the sums start, and costs none.
"""

from __future__ import annotations

import math
from typing import Any

from torchlens.analysis.flop_rules.registry import Given, Work, rule, size, stored
from torchlens.capture.recording import TensorRecord


@rule("linear", shapeless=True)
def _linear(given: Given) -> Work:
    bias = given.tensor(2, "bias")
    return Work(given.out_size * given.shape(1, "weight")[-1], given.out_size if bias is not None else 0)


@rule("matmul", "mm", "bmm", "mv", "dot", "vdot", "sparse_mm", "spmm", "smm", "hspmm", "int_mm", "scaled_mm")
def _matmul(given: Given) -> Work:
    left = given.tensor(0, "input", "self", "sparse")
    right = given.tensor(1, "other", "mat2", "vec", "vec2", "tensor", "mat", "dense", "mat1")
    if left is None or right is None:
        raise LookupError(given.name)
    if given.name == "__rmatmul__":
        left, right = right, left
    if stored(left) != size(left):
        return Work(stored(left) * (right.shape[-1] if len(right.shape) > 1 else 1))
    if stored(right) != size(right):
        return Work(stored(right) * (left.shape[-2] if len(left.shape) > 1 else 1))
    return Work(given.out_size * left.shape[-1])


@rule("inner", "vecdot")
def _inner(given: Given) -> Work:
    return Work(given.out_size * (given.shape(0, "input", "x") or (1,))[-1])


@rule("outer", "ger", "addr")
def _outer(given: Given) -> Work:
    return Work(given.out_size)


@rule("addmm", "baddbmm", "addmv", "sparse_addmm", "sspaddmm")
def _added_product(given: Given) -> Work:
    left = given.tensor(1, "mat1", "batch1", "mat")
    if left is None:
        raise LookupError(given.name)
    added = given.tensor(0, "input", "self", "mat")
    bias = given.out_size if added is not None and len(added.shape) < len(given.out.shape) else 0
    if stored(left) != size(left):
        return Work(stored(left) * given.out.shape[-1], bias)
    return Work(given.out_size * left.shape[-1], bias)


@rule("addbmm")
def _addbmm(given: Given) -> Work:
    return Work(math.prod(given.shape(1, "batch1")) * given.shape(2, "batch2")[-1])


@rule("grouped_mm", "scaled_grouped_mm")
def _grouped_mm(given: Given) -> Work:
    """Each row of the left matrix meets the matrix of its group alone."""
    left, right = given.shape(0, "input", "self", "mat_a"), given.shape(1, "mat2", "mat_b")
    if len(left) == 2 and len(right) == 2:
        return Work(math.prod(left) * right[-1])
    return Work(given.out_size * left[-1])


@rule("tensordot")
def _tensordot(given: Given) -> Work:
    """``|a| |b| = |out| k²`` for contracted size ``k``."""
    both = math.prod(given.shape(0, "a")) * math.prod(given.shape(1, "b"))
    return Work(given.out_size * math.isqrt(both // given.out_size) if given.out_size else 0)


@rule("bilinear")
def _bilinear(given: Given) -> Work:
    """``x1 W`` for each output feature, then its product with ``x2``."""
    first, second = given.shape(2, "weight")[-2:]
    bias = given.out_size if given.tensor(3, "bias") is not None else 0
    return Work(given.out_size * second * (first + 1), bias)


@rule("cdist")
def _cdist(given: Given) -> Work:
    """A difference, and a product summed, per feature; the root of each distance."""
    terms = given.out_size * given.shape(0, "x1")[-1]
    return Work(terms, terms + given.out_size)


@rule("multi_dot", "chain_matmul")
def _chain(given: Given) -> Work:
    """The cheapest order of products (the one that torch takes), by dynamic programming."""
    first = given.args[0]
    listed = first if isinstance(first, (list, tuple)) else given.args
    shapes = [item.facts.shape for item in listed if isinstance(item, TensorRecord) and item.facts]
    rows = 1 if len(shapes[0]) == 1 else shapes[0][0]
    columns = 1 if len(shapes[-1]) == 1 else shapes[-1][-1]
    sizes = [rows, *(shape[0] for shape in shapes[1:]), columns]
    count = len(shapes)
    cost = [[0] * count for _ in range(count)]
    for span in range(1, count):
        for i in range(count - span):
            j = i + span
            cost[i][j] = min(
                cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)
            )
    return Work(cost[0][-1])


@rule("matrix_power")
def _matrix_power(given: Given) -> Work:
    """Repeated squaring: one product per bit, and one more per further bit that is set."""
    power = abs(int(given.value(1, "n")))
    products = max(0, power.bit_length() - 1 + power.bit_count() - 1) if power else 0
    return Work(products * given.out_size * given.out.shape[-1])


@rule("einsum")
def _einsum(given: Given) -> Work:
    """Two operands: the product of all index sizes.  One: what is summed.  More: order decides."""
    inputs, result, shapes = _equation(given)
    sizes: dict[Any, int] = {}
    for indices, shape in zip(inputs, shapes, strict=True):
        for index, length in zip(indices, shape, strict=True):
            sizes[index] = max(length, sizes.get(index, 1))
    if len(inputs) == 1:
        summed = set(inputs[0]) - set(result)
        return Work(0, math.prod(shapes[0]) if summed else 0)
    if len(inputs) > 2:
        raise LookupError("einsum of more than two operands")
    return Work(math.prod(sizes.values()))


def _equation(given: Given) -> tuple[list[list[Any]], list[Any], list[tuple[int, ...]]]:
    """Indices of each operand and of the result, and the operands' shapes; dots as ``("dot", n)``."""
    spelled = given.args[0]
    if not isinstance(spelled, str):
        raise LookupError("einsum in sublist form")
    rest = given.args[1:]
    listed = rest[0] if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else rest
    shapes = [item.facts.shape for item in listed if isinstance(item, TensorRecord) and item.facts]
    left, _, right = spelled.replace(" ", "").partition("->")
    inputs = [_letters(term, len(shape), 0) for term, shape in zip(left.split(","), shapes, strict=True)]
    if "->" in spelled:
        return inputs, _letters(right, None, len(given.out.shape)), shapes
    every = [index for term in inputs for index in term]
    return inputs, [index for index in every if every.count(index) == 1 or isinstance(index, tuple)], shapes


def _letters(term: str, rank: int | None, out_rank: int) -> list[Any]:
    named = term.replace("...", "")
    if "..." not in term:
        return list(term)
    hidden = (out_rank if rank is None else rank) - len(named)
    before, after = term.split("...")
    return [*before, *(("dot", hidden - i) for i in range(hidden)), *after]
