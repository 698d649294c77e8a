"""The facts of every op or layer, as columns: what the page shows of a node beside its picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchlens.drawing.page.strings import Strings
from torchlens.drawing.rows import shapes_text
from torchlens.trace.op import Layer, Op

if TYPE_CHECKING:
    from torchlens.drawing.graph import Unit

COLUMNS = (
    "label",
    "type",
    "shape",
    "kind",
    "module",
    "code",
    "passes",
    "bytes",
    "time",
    "flops",
    "params",
    "saved",
    "state",
)


class Facts:
    """Columns of facts; a part is known by its number there."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._numbers: dict[Op | Layer, int] = {}
        self.columns: dict[str, list[int | float | None]] = {name: [] for name in COLUMNS}

    def number(self, unit: Unit) -> int:
        """Number of what a unit stands for."""
        part = unit.part
        if part not in self._numbers:
            self._numbers[part] = len(self._numbers)
            for name, value in zip(COLUMNS, self._row(unit), strict=True):
                self.columns[name].append(value)
        return self._numbers[part]

    def _row(self, unit: Unit) -> tuple[int | float | None, ...]:
        op, text = unit.op, self._strings.number
        call = unit.leaf[0] if unit.leaf else op.call
        where = f"{call.label} · {call.module.class_name}" if call is not None and call.module.address else ""
        is_call = op.kind == "call"
        params = sum(int(param.numel) for param in unit.params)
        return (
            text(unit.part.label),
            text(op.type),
            text(shapes_text(op.shapes) if op.records else ""),
            text(_kind(op)),
            text(where),
            text(f"{op.code} in {op.code.function}" if is_call and op.code is not None else ""),
            len(unit.ops),
            _total([each.bytes for each in unit.ops]),
            _total([each.func_duration for each in unit.ops]) if is_call else None,
            _total([each.flops for each in unit.ops]) if is_call else None,
            params,
            _total([each.saved_for_backward for each in unit.ops]) if is_call else None,
            text(_state(unit.ops)),
        )


def _kind(op: Op) -> str:
    """Dtype and device."""
    dtype = str(op.dtype).removeprefix("torch.") if op.dtype is not None else ""
    return " on ".join(part for part in (dtype, str(op.device or "")) if part)


def _total(values: Sequence[Any]) -> int | float | None:
    """The sum over passes, unknown where one of them is; times to nine digits after the point."""
    if any(value is None for value in values):
        return None
    total: int | float = sum(values)
    return int(total) if isinstance(total, int) else round(float(total), 9)


def _state(ops: Sequence[Op]) -> str:
    states = list(dict.fromkeys(op.nonfinite for op in ops))
    return ", ".join(state for state in states if state) if None not in states else ""
