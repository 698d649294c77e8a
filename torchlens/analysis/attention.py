"""Attention in a graph: fused calls, and the products and softmax that amount to it.

Composed attention is found by dataflow from each softmax: up to the product that made the scores, down to
the product that sums values over the softmax's dimension.  Names of modules and variables play no part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from torchlens._collector import rare_collections
from torchlens.analysis.axes import axis_after, axis_before, shape_of
from torchlens.analysis.contraction import Product, product_of
from torchlens.analysis.projections import groups_of, is_weight, source_of

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.parts import Call, Edge
    from torchlens.trace.trace import Trace

REACH = 24
"""Ops followed at most between the softmax and either product."""

_ON_SCORES = """
mul div add sub masked_fill where to float half bfloat16 type type_as view reshape contiguous clone
transpose permute clamp tanh dropout nan_to_num expand unsqueeze squeeze getitem cat neg softmax
flatten unflatten swapaxes mT maximum alias
"""
ON_SCORES = frozenset(_ON_SCORES.split())
"""What may stand between the products and the softmax: scales, masks, caps, casts, reshapes, dropout."""


@dataclass(frozen=True, slots=True)
class AttentionSite:
    """One attention.

    Attributes
    ----------
    form : {"fused", "composed"}
    relation : {"self", "cross"}
        Whether queries and keys are made of the same tensor.
    q, k, v : Edge
        The edges on which queries, keys and values enter: into the fused call, or into the two products.
        ``q`` is ``None`` where the queries are a parameter.
    mask : Edge or None
        The edge on which a mask or bias enters a fused call.
    scores, softmax : Op or None
        The product of queries and keys, and the softmax; ``None`` inside a fused call.
    output : Op
        What sums the values: the fused call itself, or the second product.
    ops : tuple of Op
        From scores to output, in order.
    heads, kv_heads : int or None
        Query heads, and key heads before they are shared out; ``None`` where heads are folded into the
        batch.
    q_length, k_length : int
        Positions.
    call : Call or None
        The innermost module call around the output.
    """

    form: Literal["fused", "composed"]
    relation: Literal["self", "cross"]
    q: Edge | None
    k: Edge
    v: Edge
    mask: Edge | None
    scores: Op | None
    softmax: Op | None
    output: Op
    ops: tuple[Op, ...]
    heads: int | None
    kv_heads: int | None
    q_length: int
    k_length: int
    call: Call | None

    @property
    def roles(self) -> dict[Edge | Op, str]:
        """``q k v mask`` by edge, ``scores softmax output`` by op."""
        found: dict[Edge | Op, str] = {self.k: "k", self.v: "v", self.output: "output"}
        if self.q is not None:
            found[self.q] = "q"
        if self.mask is not None:
            found[self.mask] = "mask"
        if self.scores is not None:
            found[self.scores] = "scores"
        if self.softmax is not None:
            found[self.softmax] = "softmax"
        return found


@rare_collections()
def attention(trace: Trace) -> list[AttentionSite]:
    """Every attention in order of its output.

    Not taken for attention: a softmax over classes or experts, whose scores come from weights; gates that
    scale elementwise; mixtures whose values differ for every query.
    """
    found: list[AttentionSite] = []
    taken: set[Op] = set()
    for op in trace.ops:
        site = None
        if "scaled_dot_product" in op.type or op.type == "flex_attention":
            site = _fused(op)
        elif op.type == "softmax":
            site = _composed(op)
        if site is not None and site.output not in taken:
            taken.add(site.output)
            found.append(site)
    return sorted(found, key=lambda site: site.output.step)


def _fused(op: Op) -> AttentionSite | None:
    slots: dict[object, Edge] = {}
    for edge in op.inputs:
        if len(edge.path) == 2:
            slots.setdefault(edge.path[1], edge)
    q = slots.get(0) or slots.get("query")
    k = slots.get(1) or slots.get("key")
    v = slots.get(2) or slots.get("value")
    if q is None or k is None or v is None:
        return None
    queries, keys = shape_of(q), shape_of(k)
    if len(queries) < 2 or len(keys) < 2:
        return None
    has_heads = len(queries) > 3
    return AttentionSite(
        form="fused",
        relation=_relation(q, k),
        q=q,
        k=k,
        v=v,
        mask=slots.get(3) or slots.get("attn_mask"),
        scores=None,
        softmax=None,
        output=op,
        ops=(op,),
        heads=queries[-3] if has_heads else None,
        kv_heads=keys[-3] // groups_of(k) if has_heads else None,
        q_length=queries[-2],
        k_length=keys[-2],
        call=op.call,
    )


def _composed(softmax: Op) -> AttentionSite | None:
    """Attention around a softmax, if there is any."""
    shape = softmax.shape
    axis = _softmax_axis(softmax)
    if shape is None or axis is None:
        return None
    for scores, over in _upward(softmax, axis):
        keyed = _keys(scores, over)
        if keyed is None:
            continue
        q, k, rows = keyed
        for values, weights in _downward(softmax, axis):
            v = values.other(weights).edge
            if v is None or is_weight(v) or not _keeps_queries(values, weights, scores, rows):
                continue
            return _site(scores, softmax, values, q, k, v, over=over, rows=rows)
    return None


def _site(
    scores: Product, softmax: Op, values: Product, q: Edge | None, k: Edge, v: Edge, *, over: int, rows: int
) -> AttentionSite:
    shape = scores.op.shape or ()
    free = [i for i in range(len(shape)) if i not in (over, rows)]
    heads = shape[free[-1]] if len(free) > 1 else None
    between = _between(scores.op, values.op)
    return AttentionSite(
        form="composed",
        relation=_relation(q, k),
        q=q,
        k=k,
        v=v,
        mask=None,
        scores=scores.op,
        softmax=softmax,
        output=values.op,
        ops=between,
        heads=heads,
        kv_heads=None if heads is None else max(1, heads // groups_of(k)),
        q_length=shape[rows],
        k_length=shape[over],
        call=values.op.call,
    )


def _relation(q: Edge | None, k: Edge) -> Literal["self", "cross"]:
    return "self" if q is not None and source_of(q) == source_of(k) else "cross"


def _softmax_axis(op: Op) -> int | None:
    """The dimension that a softmax runs over, from 0."""
    if op.record is None or op.shape is None:
        return None
    args, kwargs = op.record.args, op.record.kwargs
    dim = args[1] if len(args) > 1 and isinstance(args[1], int) else kwargs.get("dim", -1)
    return dim % len(op.shape) if isinstance(dim, int) and op.shape else None


def _upward(softmax: Op, axis: int) -> list[tuple[Product, int]]:
    """Products that the scores of a softmax come from, nearest first, with the dimension in each."""
    found: list[tuple[Product, int]] = []
    queue: list[tuple[Op, int]] = [(softmax, axis)]
    seen: set[Op] = set()
    while queue and len(seen) < REACH:
        op, place = queue.pop(0)
        if op in seen:
            continue
        seen.add(op)
        made = op.shape or ()
        for edge in op.inputs:
            before = axis_before(op, place, shape_of(edge), made)
            if before is None or edge.parent.kind != "call":
                continue
            product = product_of(edge.parent)
            if product is not None:
                found.append((product, before))
            elif edge.parent.type in ON_SCORES and edge.parent.type != "softmax":
                queue.append((edge.parent, before))
    return found


def _downward(softmax: Op, axis: int) -> list[tuple[Product, Edge]]:
    """Products that sum over the softmax's dimension, nearest first, with the edge of the weights."""
    found: list[tuple[Product, Edge]] = []
    queue: list[tuple[Op, int]] = [(softmax, axis)]
    seen: set[Op] = set()
    while queue and len(seen) < REACH:
        op, place = queue.pop(0)
        if op in seen:
            continue
        seen.add(op)
        for edge in op.children_edges:
            child = edge.child
            product = product_of(child)
            operand = product.operand(edge) if product is not None else None
            if product is not None and operand is not None:
                if place < len(operand.indices) and operand.indices[place] not in product.result:
                    found.append((product, edge))
            elif child.type in ON_SCORES and child.type != "softmax" and child.shape is not None:
                after = axis_after(child, place, shape_of(edge), child.shape)
                if after is not None and after < len(child.shape) and child.type != "where":
                    queue.append((child, after))
    return found


def _keys(scores: Product, axis: int) -> tuple[Edge | None, Edge, int] | None:
    """Queries, keys, and the queries' dimension in the scores; ``None`` if the keys are weights.

    The factor that has the softmax's dimension holds the keys; the dimension of the queries is the one
    that only the other factor has.
    """
    if axis >= len(scores.result):
        return None
    index = scores.result[axis]
    in_left, in_right = index in scores.left.indices, index in scores.right.indices
    if in_left == in_right:
        return None
    keys, queries = (scores.left, scores.right) if in_left else (scores.right, scores.left)
    own = [i for i, name in enumerate(scores.result) if name not in keys.indices]
    if not own or keys.edge is None or is_weight(keys.edge):
        return None
    return queries.edge, keys.edge, own[-1]


def _keeps_queries(values: Product, weights: Edge, scores: Product, rows: int) -> bool:
    """Whether all queries meet the same values: their dimension is the weights' alone."""
    ours = values.operand(weights)
    theirs = values.other(weights)
    if ours is None:
        return False
    free = [
        size for name, size in zip(ours.indices, ours.shape, strict=False)
        if name in values.result and name not in theirs.indices
    ]  # fmt: skip
    count = (scores.op.shape or ())[rows]
    return any(size == count for size in free) or (bool(free) and max(free) % max(count, 1) == 0)


def _between(first: Op, last: Op) -> tuple[Op, ...]:
    """The ops on the ways from one op to another, both included."""
    above: set[Op] = {last}
    queue = [last]
    while queue:
        for edge in queue.pop().inputs:
            if edge.parent.step >= first.step and edge.parent not in above:
                above.add(edge.parent)
                queue.append(edge.parent)
    below: set[Op] = {first}
    for op in sorted(above, key=lambda op: op.step):
        if any(edge.parent in below for edge in op.inputs):
            below.add(op)
    return tuple(sorted(above & below, key=lambda op: op.step))
