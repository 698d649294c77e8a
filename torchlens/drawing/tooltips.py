"""What a node says when pointed at."""

from __future__ import annotations

from torchlens.drawing.fold import Shown
from torchlens.drawing.rows import code_of, inside_text, shapes_text
from torchlens.trace.op import Op

LISTED = 4


def tooltip(node: Shown) -> str:
    """Label, place in the code, shapes and costs of what a node stands for."""
    if node.kind != "unit":
        names = ", ".join(scope.calls[0].label for scope in node.scopes[:LISTED])
        more = f" and {len(node.scopes) - LISTED} more" if len(node.scopes) > LISTED else ""
        return f"{names}{more}\n{inside_text(node.units)}"
    ops = node.unit.ops
    lines = [node.unit.part.label + (f", {len(ops)} passes" if len(ops) > 1 else "")]
    return "\n".join(lines + _facts(ops[0]))


def _facts(op: Op) -> list[str]:
    lines = []
    if op.records:
        kind = str(op.dtype).removeprefix("torch.") if op.dtype is not None else ""
        lines.append(" ".join(part for part in (shapes_text(op.shapes), kind, str(op.device or "")) if part))
    if op.kind != "call":
        return lines
    costs = [op.func_duration, op.bytes, op.flops]
    lines.append(" · ".join(str(value) for value in costs if value is not None))
    if op.call is not None and op.call.module.address:
        lines.append(f"in {op.call.label} ({op.call.module.class_name})")
    code = code_of(op)
    if code is not None:
        lines.append(f"{code} in {code.function}")
    return [line for line in lines if line]
