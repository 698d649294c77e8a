"""Which dimensions of its two operands a matrix product sums over, keeps, and pairs up."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchlens.analysis.axes import Shape
from torchlens.capture.recording import Path, records_in

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.parts import Edge

PRODUCTS = frozenset(["matmul", "mm", "bmm", "baddbmm", "addbmm", "addmm", "einsum"])


class Operand(NamedTuple):
    """One factor: its shape, and for each of its dimensions the name of the index that runs over it.

    ``edge`` is how it gets there; ``None`` for a parameter, which is no op.
    """

    edge: Edge | None
    shape: Shape
    indices: tuple[str, ...]


class Product(NamedTuple):
    """A product of two tensors: ``left`` and ``right`` summed over the indices that ``result`` lacks."""

    op: Op
    left: Operand
    right: Operand
    result: tuple[str, ...]

    def other(self, edge: Edge) -> Operand:
        """The factor that ``edge`` is not."""
        return self.right if edge == self.left.edge else self.left

    def operand(self, edge: Edge) -> Operand | None:
        """The factor that an edge is."""
        return next((item for item in (self.left, self.right) if item.edge == edge), None)


class _Factor(NamedTuple):
    edge: Edge | None
    shape: Shape


def product_of(op: Op) -> Product | None:
    """An op as a product of two tensors, if it is one."""
    if op.type not in PRODUCTS or op.record is None or not op.shapes or op.shape is None:
        return None
    if op.type == "einsum":
        return _einsum(op)
    added = 1 if op.type in ("baddbmm", "addbmm", "addmm") else 0
    first = _factor(op, (0, added), "input", "batch1", "mat1")
    second = _factor(op, (0, added + 1), "other", "mat2", "batch2")
    if first is None or second is None or len(first.shape) < 2 or len(second.shape) < 2:
        return None
    if op.func_name == "__rmatmul__":
        first, second = second, first
    batch = tuple(f"batch{i}" for i in range(max(len(first.shape), len(second.shape)) - 2))
    ours = (*batch[len(batch) - len(first.shape) + 2 :], "row", "sum")
    theirs = (*batch[len(batch) - len(second.shape) + 2 :], "sum", "column")
    return Product(op, Operand(*first, ours), Operand(*second, theirs), (*batch, "row", "column"))


def _factor(op: Op, path: Path, *names: str) -> _Factor | None:
    """The tensor argument at a path, or under one of the names."""
    assert op.record is not None
    given = dict(records_in((op.record.args, op.record.kwargs)))
    for place in (path, *((1, name) for name in names)):
        record = given.get(place)
        if record is not None:
            edges = sorted((edge for edge in op.inputs if edge.path == place), key=lambda edge: edge.write)
            edge = edges[0] if edges else None
            return _Factor(edge, record.facts.shape if record.facts is not None else ())
    return None


def _einsum(op: Op) -> Product | None:
    assert op.record is not None
    spelled = op.record.args[0] if op.record.args else None
    paths = [path for path, _ in records_in((op.record.args, op.record.kwargs))]
    if not isinstance(spelled, str) or len(paths) != 2 or "->" not in spelled:
        return None
    left, _, result = spelled.replace(" ", "").partition("->")
    terms = left.split(",")
    factors = [factor for path in paths if (factor := _factor(op, path)) is not None]
    if len(terms) != 2 or len(factors) != 2:
        return None
    operands = [
        Operand(*factor, _indices(term, len(factor.shape)))
        for term, factor in zip(terms, factors, strict=True)
    ]
    return Product(op, operands[0], operands[1], _indices(result, len(op.shape or ())))


def _indices(term: str, rank: int) -> tuple[str, ...]:
    named = term.replace("...", "")
    before, dots, after = term.partition("...")
    hidden = rank - len(named) if dots else 0
    return (*before, *(f"...{hidden - i}" for i in range(hidden)), *after)
