"""What stands side by side: the passes of a loop, or what a user's function calls equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlens.drawing.channels import called
from torchlens.drawing.fold import Shape, Shown
from torchlens.drawing.graph import Scope, Unit, units_in

Key = Callable[[Unit], Any]


def columns(shape: Shape, stack_by: Any) -> tuple[dict[Shown, int], dict[Scope, int]]:
    """Column numbers of nodes and boxes; only the outermost box of a column carries its number."""
    key = _pass if stack_by == "pass" else lambda unit: called(stack_by, unit.part)
    numbers: dict[Any, int] = {}

    def number(units: list[Unit]) -> int | None:
        found = [key(unit) for unit in units if unit.op.kind == "call"]
        if not found or any(value is None or value != found[0] for value in found):
            return None
        return numbers.setdefault(found[0], len(numbers))

    boxes: dict[Scope, int] = {}
    inside: set[Scope] = set()
    for scope in shape.boxes:
        if scope.parent in inside:
            inside.add(scope)
        elif (column := number(units_in(scope))) is not None:
            boxes[scope] = column
            inside.add(scope)
    nodes = {
        node: column
        for node in shape.nodes
        if not node.stub and node.around not in inside and (column := number(node.units)) is not None
    }
    return nodes, boxes


def _pass(unit: Unit) -> int | None:
    return unit.op.pass_index if unit.op.num_passes > 1 else None
