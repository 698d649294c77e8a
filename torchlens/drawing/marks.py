"""What a node is, and what happened to it: roles, and marks laid over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchlens.drawing.channels import reached_from_inputs
from torchlens.drawing.fold import Shown
from torchlens.drawing.graph import Unit
from torchlens.drawing.scene import Motif, Row
from torchlens.drawing.themes import Theme

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace

NONFINITE: Mapping[str, tuple[str, Motif]] = {
    "nan": ("NaN", "diagonal"),
    "+inf": ("+Inf", "dots"),
    "-inf": ("-Inf", "horizontal"),
    "mixed": ("mixed NaN/Inf", "cross"),
}
"""Text and motif of each nonfinite state."""
NOT_CHECKED = "not checked"


@dataclass(slots=True)
class Mark:
    """Fields of a node that a mark sets, lines of text that it adds, and what the legend calls it."""

    look: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    kind: str = ""


def weights_role(units: Sequence[Unit]) -> str:
    """``trainable``, ``frozen`` or ``mixed`` by the parameters that units read; else nothing."""
    kinds = {param.trainable for unit in units for param in unit.params}
    if len(kinds) == 2:
        return "mixed"
    return "" if not kinds else ("trainable" if kinds.pop() else "frozen")


def role_of(node: Shown) -> str:
    """The role that chooses a node's colours."""
    if node.stub:
        return "stub"
    if node.kind != "unit":
        return weights_role(node.units)
    unit = node.unit
    if any(op.failed for op in unit.ops):
        return "failed"
    if unit.op.kind != "call":
        return unit.op.kind
    if any(op.branch_test is not None for op in unit.ops):
        return "branch"
    if unit.op.call is not None and unit.op.call.opaque:
        return "opaque"
    return weights_role([unit])


def role_look(role: str, theme: Theme, *, dashed: bool) -> dict[str, Any]:
    """Colours and lines of a role in a theme."""
    kind = theme.roles.get(role)
    fill = kind.fill if kind else theme.node_fill
    return {
        "fill": fill,
        "stroke": kind.stroke if kind else theme.node_stroke,
        "ink": theme.ink_on(fill),
        "stroke_width": (kind.width if kind else 1.0) * theme.node_width,
        "dashed": dashed or bool(kind and kind.dashed),
    }


def unreached(trace: Trace) -> set[int]:
    """Steps of the ops that no input reaches."""
    reached = reached_from_inputs(trace)
    return {op.step for op in trace.ops if op.step not in reached}


def is_unreached(node: Shown, steps: set[int]) -> bool:
    """Whether no input reaches anything in a node that computes."""
    ops = [op for unit in node.units for op in unit.ops if op.kind == "call"]
    return bool(ops) and all(op.step in steps for op in ops)


def outcome_rows(node: Shown) -> list[Row]:
    """``IF: TRUE`` or ``IF: FALSE`` of a branch test, and the error of a failed op."""
    if node.kind != "unit" or node.stub:
        return []
    outcomes = list(dict.fromkeys(op.branch_test for op in node.unit.ops if op.branch_test is not None))
    rows = [Row("IF: " + " / ".join("TRUE" if o else "FALSE" for o in outcomes), "note")] if outcomes else []
    if any(op.failed for op in node.unit.ops):
        failure = node.unit.op._trace.failure
        name = type(failure.exception).__name__ if failure is not None else "an exception"
        rows.append(Row(f"raised {name}", "note"))
    return rows


def nonfinite_mark(node: Shown) -> Mark:
    """The motif and text of a node whose outputs are not all finite, or were not checked."""
    if node.stub:
        return Mark()
    states = [op.nonfinite or "" for unit in node.units for op in unit.ops if op.records]
    found = list(dict.fromkeys(state for state in states if state in NONFINITE))
    if found:
        name = found[0] if len(found) == 1 else "mixed"
        text = NONFINITE[name][0] if len(found) == 1 else ", ".join(NONFINITE[s][0] for s in found)
        return Mark({"motif": NONFINITE[name][1]}, [Row(text, "note")])
    if not all(states):
        return Mark({"dashed": True}, [Row(NOT_CHECKED, "note")])
    return Mark()
