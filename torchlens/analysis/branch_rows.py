"""Branches as rows of plain data, so that they outlive the source that they were found in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from torchlens.analysis.branches import Branch
from torchlens.capture.callsite import Location

if TYPE_CHECKING:
    from torchlens.trace.parts import Edge
    from torchlens.trace.trace import Trace

Row = tuple[Any, ...]
"""Step of the tested op, outcome, location, kind, test, holds; then steps and edges of both arms."""


def to_rows(branches: Iterable[Branch]) -> list[Row]:
    """Ops as their steps, edges as ``(step of the child, position among its inputs)``."""
    return [
        (
            None if branch.op is None else branch.op.step,
            branch.outcome,
            None if branch.location is None else tuple(branch.location),
            branch.kind,
            branch.test,
            branch.holds,
            tuple(op.step for op in branch.then_ops),
            tuple(op.step for op in branch.else_ops),
            tuple(_place(edge) for edge in branch.then_edges),
            tuple(_place(edge) for edge in branch.else_edges),
        )
        for branch in branches
    ]


def from_rows(trace: Trace, rows: Iterable[Row]) -> list[Branch]:
    """The inverse, with the ops and edges of ``trace``."""
    found = []
    for step, outcome, location, kind, test, holds, then_steps, else_steps, then_at, else_at in rows:
        found.append(
            Branch(
                None if step is None else trace.ops[step],
                outcome,
                None if location is None else Location(*location),
                kind,
                test,
                holds,
                tuple(trace.ops[one] for one in then_steps),
                tuple(trace.ops[one] for one in else_steps),
                tuple(trace.ops[child].inputs[place] for child, place in then_at),
                tuple(trace.ops[child].inputs[place] for child, place in else_at),
            )
        )
    return found


def _place(edge: Edge) -> tuple[int, int]:
    return edge.child.step, next(i for i, one in enumerate(edge.child.inputs) if one is edge)
