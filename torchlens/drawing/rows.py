"""The text of nodes and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from torchlens.capture.callsite import Location, location
from torchlens.drawing.arguments import described
from torchlens.drawing.fold import Shown
from torchlens.drawing.graph import Scope, Unit
from torchlens.drawing.scene import Row
from torchlens.drawing.settings import Settings
from torchlens.trace.quantities import Count

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.parts import Call, Param

SEPARATOR = " · "


def shape_text(shape: tuple[int, ...] | None) -> str:
    """``(1, 16, 32)``; one dimension as ``(32)``."""
    return "?" if shape is None else f"({', '.join(map(str, shape))})"


def shapes_text(shapes: Sequence[tuple[int, ...] | None]) -> str:
    """The shapes of several outputs, equal ones once."""
    if len(shapes) > 2 and len(set(shapes)) == 1:
        return f"{shape_text(shapes[0])} ×{len(shapes)}"
    shown = ", ".join(map(shape_text, shapes[:3]))
    return shown + (f" +{len(shapes) - 3}" if len(shapes) > 3 else "")


def passes_text(passes: Sequence[int]) -> str:
    """``2``, ``1–3``, or ``1, 4–6``."""
    parts: list[list[int]] = []
    for number in sorted(passes):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in parts)


def calls_name(calls: Sequence[Call]) -> str:
    """Address of one call or of all calls of a module, with ``:passes`` where they are some of several."""
    call = calls[0]
    address = call.module.address or call.module.class_name
    if len(calls) == len(call.module.calls):
        return address
    return f"{address}:{passes_text([c.pass_index for c in calls])}"


def counted(number: int, name: str, plural: str = "") -> str:
    """``1 op``, ``3 ops``."""
    return f"{number:,} {name if number == 1 else plural or name + 's'}"


def times(count: int) -> str:
    """``(x4)`` behind the title of what ran several times."""
    return f" (x{count})" if count > 1 else ""


# -- nodes -------------------------------------------------------------------------------------


def node_rows(node: Shown, settings: Settings) -> list[Row]:
    """Title and lines of a visible node."""
    if node.kind == "unit":
        return unit_rows(node.unit, settings) if not node.stub else unit_rows(node.unit, settings)[:2]
    if node.kind == "run":
        return _run_rows(node)
    return _call_rows(node, settings)


def unit_rows(unit: Unit, settings: Settings) -> list[Row]:
    """Title and lines of one op or layer."""
    op = unit.op
    title, detail = _texts(unit, settings)
    rows = [Row(title + times(len(unit.ops)), "title")]
    if settings["show_shapes"] and op.records:
        rows.append(Row(_unit_shapes(unit), "shape"))
    return [*rows, *_detail(params_text(unit.params, op)), *_detail(detail)]


def _detail(text: str) -> list[Row]:
    return [Row(text, "detail")] if text else []


def _texts(unit: Unit, settings: Settings) -> tuple[str, str]:
    """Title, and the line of arguments."""
    op = unit.op
    if op.kind != "call":
        name = op.address if op.address and op.address != op.kind else ""
        plain = not name or name.startswith(f"{op.kind}[")
        return (name or op.kind) if plain else f"{op.kind}{SEPARATOR}{name}", ""
    redundant = settings["show_redundant_args"]
    found = {described(each, bare=bool(unit.leaf), redundant=redundant): None for each in unit.ops}
    title, detail = next(iter(found)) if len(found) == 1 else (op.type, "")
    return f"{op.type}{SEPARATOR}{calls_name(unit.leaf)}" if unit.leaf else title, detail


def _unit_shapes(unit: Unit) -> str:
    kinds = list(dict.fromkeys(op.shapes for op in unit.ops))
    text = shapes_text(kinds[0])
    return text if len(kinds) == 1 else f"{text} … {shapes_text(kinds[-1])}"


def params_text(params: Sequence[Param], op: Op | None = None) -> str:
    """``weight (32, 16), bias (32) · 544 params``."""
    if not params:
        return ""
    total = Count(sum(int(param.numel) for param in params))
    home = op.module.address if op is not None and op.module is not None else ""
    shown = [f"{_param_name(param, home)} {shape_text(param.shape)}" for param in params[:2]]
    more = f" +{len(params) - 2}" if len(params) > 2 else ""
    return f"{', '.join(shown)}{more}{SEPARATOR}{total} params"


def _param_name(param: Param, home: str) -> str:
    for address in param.addresses:
        if home and address.startswith(home + "."):
            return address[len(home) + 1 :]
    return param.addresses[0]


# -- closed calls and runs ---------------------------------------------------------------------


def scope_title(scope: Scope) -> str:
    """``address · Class`` of a module call, with ``(x4)`` if it stands for several."""
    return f"{calls_name(scope.calls)}{SEPARATOR}{class_of(scope)}{times(len(scope.calls))}"


def class_of(scope: Scope) -> str:
    """Class name of a scope's module."""
    return scope.calls[0].module.class_name


def inside_text(units: Sequence[Unit]) -> str:
    """Number of ops and params inside a closed node."""
    count = sum(len(unit.ops) for unit in units if unit.op.kind == "call")
    params = {param.index: int(param.numel) for unit in units for param in unit.params}
    text = f"{count} ops" if count != 1 else "1 op"
    return text + (f"{SEPARATOR}{Count(sum(params.values()))} params" if params else "")


def _call_rows(node: Shown, settings: Settings) -> list[Row]:
    scope = node.scopes[0]
    rows = [Row(scope_title(scope), "title")]
    if settings["show_shapes"]:
        shapes = out_shapes(scope, node.units)
        rows += [Row(shapes_text(shapes), "shape")] if shapes else []
    return rows if node.stub else [*rows, *_detail(inside_text(node.units))]


def out_shapes(scope: Scope, units: Sequence[Unit]) -> list[tuple[int, ...] | None]:
    """Shapes of what a module call returned; else of what leaves it."""
    from torchlens.capture.recording import records_in

    found = [record.facts for _, record in records_in(scope.calls[0]._record.output)]
    shapes: list[tuple[int, ...] | None] = [f.shape for f in found if f is not None]
    return shapes or list(units[-1].op.shapes)


def _run_rows(node: Shown) -> list[Row]:
    first, last = node.scopes[0], node.scopes[-1]
    home = node.around.calls[0].module.address if node.around.calls else ""
    names = [calls_name(scope.calls) for scope in dict.fromkeys((first, last))]
    short = [name.removeprefix(f"{home}.") if home else name for name in names]
    shown = short if all("." in name for name in short) else names
    title = f"+{len(node.scopes)} more {class_of(first)} ({'–'.join(shown)})"
    return [Row(title, "title"), *_detail(inside_text(node.units))]


# -- extra rows --------------------------------------------------------------------------------


def code_of(op: Op) -> Location | None:
    """The line of code that made a call; lines are looked up once for all ops that share one."""
    return _location(op.full_site)


_location = lru_cache(maxsize=8192)(location)


def cost_rows(unit: Unit) -> list[Row]:
    """Time, bytes and FLOPs of a unit, and the line of code that made it; what is unknown is left out."""
    if unit.op.kind != "call":
        return []
    many = len(unit.ops) > 1
    part = unit.part
    values = (
        [part.total_func_duration, part.total_bytes, part.total_flops]  # type: ignore[union-attr]
        if many
        else [unit.op.func_duration, unit.op.bytes, unit.op.flops]
    )
    rows = _detail(SEPARATOR.join(str(value) for value in values if value is not None))
    code = code_of(unit.op)
    if code is not None:
        rows += _detail(f"{code.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{code.line}")
    return rows


def saved_rows(unit: Unit) -> list[Row]:
    """What autograd keeps of a unit."""
    values = [op.saved_for_backward for op in unit.ops]
    known = [value for value in values if value is not None]
    if unit.op.kind != "call" or not known or not sum(known):
        return []
    return _detail(f"saved for backward {type(known[0])(sum(known))}")
