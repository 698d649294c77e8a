"""Which dimensions of its two operands a matrix product sums over, keeps, and pairs up."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchlens.analysis.axes import Shape, shape_of

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.parts import Edge

PRODUCTS = frozenset(["matmul", "mm", "bmm", "baddbmm", "addbmm", "addmm", "einsum"])


class Operand(NamedTuple):
    """One factor: its edge, and for each of its dimensions the name of the index that runs over it."""

    edge: Edge
    indices: tuple[str, ...]

    @property
    def shape(self) -> Shape:
        """Shape of the factor."""
        return shape_of(self.edge)


class Product(NamedTuple):
    """A product of two tensors: ``left`` and ``right`` summed over the indices that ``result`` lacks."""

    op: Op
    left: Operand
    right: Operand
    result: tuple[str, ...]

    def other(self, edge: Edge) -> Operand:
        """The factor that ``edge`` is not."""
        return self.right if edge is self.left.edge or edge == self.left.edge else self.left

    def operand(self, edge: Edge) -> Operand | None:
        """The factor that an edge is."""
        return next((item for item in (self.left, self.right) if item.edge == edge), None)


def product_of(op: Op) -> Product | None:
    """An op as a product of two tensors, if it is one."""
    if op.type not in PRODUCTS or op.record is None or not op.shapes or op.shape is None:
        return None
    if op.type == "einsum":
        return _einsum(op)
    added = 1 if op.type in ("baddbmm", "addbmm", "addmm") else 0
    by_place = {edge.path[1]: edge for edge in op.inputs if len(edge.path) == 2 and not edge.write}
    first = by_place.get(added) or _named(by_place, "input", "batch1", "mat1")
    second = by_place.get(added + 1) or _named(by_place, "other", "mat2", "batch2")
    if first is None or second is None:
        return None
    if op.func_name == "__rmatmul__":
        first, second = second, first
    left, right = shape_of(first), shape_of(second)
    if len(left) < 2 or len(right) < 2:
        return None
    batch = tuple(f"batch{i}" for i in range(max(len(left), len(right)) - 2))
    ours = (*batch[len(batch) - len(left) + 2 :], "row", "sum")
    theirs = (*batch[len(batch) - len(right) + 2 :], "sum", "column")
    return Product(op, Operand(first, ours), Operand(second, theirs), (*batch, "row", "column"))


def _named(by_place: dict[object, Edge], *names: str) -> Edge | None:
    return next((by_place[name] for name in names if name in by_place), None)


def _einsum(op: Op) -> Product | None:
    assert op.record is not None
    spelled = op.record.args[0] if op.record.args else None
    edges = [edge for edge in op.inputs if not edge.write]
    if not isinstance(spelled, str) or len(edges) != 2 or "->" not in spelled:
        return None
    left, _, result = spelled.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != 2:
        return None
    spelt = [_indices(term, len(shape_of(edge))) for term, edge in zip(terms, edges, strict=True)]
    made = _indices(result, len(op.shape or ()))
    return Product(op, Operand(edges[0], spelt[0]), Operand(edges[1], spelt[1]), made)


def _indices(term: str, rank: int) -> tuple[str, ...]:
    named = term.replace("...", "")
    before, dots, after = term.partition("...")
    hidden = rank - len(named) if dots else 0
    return (*before, *(f"...{hidden - i}" for i in range(hidden)), *after)
