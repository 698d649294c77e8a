"""Text views: the graph line by line, and the table of modules."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from torchlens.capture.recording import records_in
from torchlens.trace.quantities import Count, Flops

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.parts import Call
    from torchlens.trace.trace import Trace

LONGEST = 400
"""Ops printed by ``print(trace)``; the middle of a longer trace is left out and counted."""


def as_text(trace: Trace) -> str:
    """The whole trace: header, then each op indented by its module calls."""
    totals = trace.totals
    lines = [
        f"{trace.name}: {totals.ops} ops, {totals.params} params ({totals.trainable_params} trainable), "
        f"{totals.flops}"
    ]
    if not trace.completed and trace.failure is not None:
        lines.append(f"stopped by {type(trace.failure.exception).__name__}: {trace.failure.exception}")
    ops = trace.ops
    hidden = max(0, len(ops) - LONGEST)
    open_calls: list[Call] = []
    for position, op in enumerate(ops):
        if hidden and LONGEST // 2 <= position < LONGEST // 2 + hidden:
            if position == LONGEST // 2:
                lines.append(f"… {hidden} more ops; read trace.ops[{position}:{position + hidden}] …")
            continue
        lines += _module_lines(op, open_calls)
        lines.append(_op_line(op, len(open_calls)))
    return "\n".join(lines)


def _call_stack(op: Op) -> list[Call]:
    found: list[Call] = []
    call = op.call
    while call is not None:
        if call.parent is not None or call.module.address:
            found.append(call)
        call = call.parent
    return found[::-1]


def _module_lines(op: Op, open_calls: list[Call]) -> list[str]:
    """Lines for module calls that open before an op; ``open_calls`` is brought up to date."""
    stack = (
        _call_stack(op) if op.kind == "call" else (open_calls if op.kind not in ("input", "output") else [])
    )
    shared = 0
    while shared < min(len(stack), len(open_calls)) and stack[shared] is open_calls[shared]:
        shared += 1
    fresh = stack[shared:]
    lines = [f"{'  ' * (shared + i + 1)}{c.label} ({c.module.class_name})" for i, c in enumerate(fresh)]
    open_calls[:] = stack
    return lines


def _op_line(op: Op, depth: int) -> str:
    shapes = ", ".join("?" if shape is None else str(shape) for shape in op.shapes)
    parents = ", ".join(parent.label for parent in op.parents)
    parts = [op.label, shapes or ("raised" if op.failed else "")]
    if op.address:
        parts.append(op.address)
    if op.params:
        parts.append("[" + ", ".join(p.address for p in op.params) + "]")
    if parents:
        parts.append(f"<- {parents}")
    return "  " * (depth + 1) + "  ".join(part for part in parts if part)


def module_table(trace: Trace, *, depth: int | None = None) -> str:
    """One row per module call, children indented; parameters and FLOPs add up to the totals.

    A parameter counts in the first row that holds it, the FLOPs of an op in its innermost module.
    With ``depth`` a row stands for everything below it too.
    """
    head = ("module", "class", "output", "params", "FLOPs")
    rows = [head, *(_row(item) for item in module_rows(trace, depth=depth))]
    totals = trace.totals
    rows.append(("total", "", "", f"{int(totals.params):,}", f"{int(totals.flops):,}"))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = [
        "  ".join(c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip()
        for row in rows
    ]
    rule = "-" * max(map(len, lines))
    foot = f"{totals.ops} ops, {Count(totals.params)} params, {Flops(totals.flops)}"
    if totals.unknown_flops:
        foot += f" ({totals.unknown_flops} ops of unknown FLOPs not counted)"
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1], foot])


@dataclass(slots=True)
class ModuleRow:
    """One row of the module table."""

    name: str
    class_name: str
    level: int
    shapes: list[tuple[int, ...]]
    params: int
    flops: int


def module_rows(trace: Trace, *, depth: int | None = None) -> list[ModuleRow]:
    """The rows of the module table, in the order of calling; ops outside of modules come last."""
    rows: list[ModuleRow] = []
    row_of: dict[int, ModuleRow] = {}
    counted: set[int] = set()
    for call, level in _in_order(trace):
        if depth is None or level <= depth:
            name = call.label if call.module.address else call.module.class_name
            row = ModuleRow(name, call.module.class_name, level, _shapes_of(call), 0, 0)
            rows.append(row)
        else:
            assert call.parent is not None
            row = row_of[call.parent.index]
        row_of[call.index] = row
        fresh = [param for param in call.module.params if param.index not in counted]
        counted.update(param.index for param in fresh)
        row.params += sum(int(param.numel) for param in fresh)
    loose = ModuleRow("(elsewhere)", "", 0, [], 0, 0)
    for op in trace.ops:
        if op.kind == "call" and op.flops is not None:
            row = row_of[op.call.index] if op.call is not None else loose
            row.flops += int(op.flops)
    loose.params = sum(int(param.numel) for param in trace.params if param.index not in counted)
    return rows + ([loose] if loose.params or loose.flops else [])


def _row(item: ModuleRow) -> tuple[str, str, str, str, str]:
    shapes = ", ".join(str(shape) for shape in item.shapes[:2])
    if len(item.shapes) > 2:
        shapes += f" +{len(item.shapes) - 2}"
    params = f"{item.params:,}" if item.params else "-"
    return "  " * item.level + item.name, item.class_name, shapes, params, f"{item.flops:,}"


def as_data(trace: Trace) -> dict[str, Any]:
    """Totals and module rows as plain data."""
    totals = {name: getattr(trace.totals, name) for name in trace.totals.__slots__}
    return {
        "name": trace.name,
        "completed": trace.completed,
        "totals": {
            name: None if value is None else float(value) if name == "func_duration" else int(value)
            for name, value in totals.items()
        },
        "modules": [asdict(row) for row in module_rows(trace)],
    }


def _in_order(trace: Trace) -> list[tuple[Call, int]]:
    """Every module call with its nesting, in the order of calling; without recursion."""
    found: list[tuple[Call, int]] = []
    stack = [(call, 0) for call in reversed(trace.child_calls(-1))]
    while stack:
        call, level = stack.pop()
        found.append((call, level))
        stack += [(child, level + 1) for child in reversed(call.children)]
    return found


def _shapes_of(call: Call) -> list[tuple[int, ...]]:
    found = [record.facts for _, record in records_in(call.output_records)]
    return [facts.shape for facts in found if facts is not None]
