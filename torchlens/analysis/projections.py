"""Where queries and keys come from: the tensor they were projected from, and how heads were shared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from torchlens.analysis.axes import record_of, shape_of

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.parts import Edge

REACH = 48
"""Ops followed at most from a product up to the projection of its factor."""

_PROJECTIONS = """
linear addmm matmul mm einsum conv1d conv2d embedding
"""
PROJECTIONS = frozenset(_PROJECTIONS.split())
_VIEWS = """
view reshape flatten unflatten squeeze unsqueeze transpose permute swapaxes contiguous clone t T mT
to float half bfloat16 type_as detach expand getitem chunk split unbind
"""
VIEWS = frozenset(_VIEWS.split())
SHARING = frozenset(["expand", "repeat_interleave", "repeat", "broadcast_to", "expand_as"])


def is_weight(edge: Edge) -> bool:
    """Whether what travels on an edge is a parameter or buffer, or only a view or cast of one."""
    for _ in range(REACH):
        record, op = record_of(edge), edge.parent
        if record.source in ("param", "buffer") or op.kind == "buffer":
            return True
        if op.kind != "call" or op.type not in VIEWS:
            return False
        if not op.inputs:
            return bool(op.params)
        edge = op.inputs[0]
    return False


def source_of(edge: Edge) -> tuple[Any, ...]:
    """The tensor that queries or keys are made of: what their projection reads.

    Followed upwards through the first operand of each op (the newest for ops that join old and new, as a
    cache does) up to an op that reads weights; without a projection, the tensor farthest up.
    """
    for _ in range(REACH):
        op = edge.parent
        if op.kind != "call":
            break
        following = _main_edge(op)
        if following is None:
            break
        if op.type in PROJECTIONS and op.params:
            return _origin(following)
        edge = following
    return _origin(edge)


def _origin(edge: Edge) -> tuple[Any, ...]:
    """The tensor on an edge, views of it being the same."""
    for _ in range(REACH):
        op = edge.parent
        following = _main_edge(op) if op.kind == "call" and op.type in VIEWS else None
        if following is None:
            break
        edge = following
    return edge.parent.step, edge.out_index


def _main_edge(op: Op) -> Edge | None:
    """The edge on which an op gets what it hands on."""
    edges = [edge for edge in op.inputs if record_of(edge).source not in ("param", "buffer")]
    edges = [edge for edge in edges if edge.parent.kind in ("call", "input")] or edges
    if not edges:
        return None
    joins = op.type in ("cat", "index_copy", "setitem", "copy", "where")
    return edges[-1 if joins else 0]


def groups_of(edge: Edge) -> int:
    """How many query heads share one key head: by how much keys were repeated before they are used."""
    for _ in range(REACH):
        op = edge.parent
        following = op.inputs[0] if op.kind == "call" and op.inputs else None
        if following is None or op.type not in VIEWS | SHARING:
            return 1
        if op.type in SHARING:
            before, after = math.prod(shape_of(following)), math.prod(op.shape or ())
            if before and after > before:
                return after // before
        edge = following
    return 1
