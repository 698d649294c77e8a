"""Which ops take part in a drawing, and what of them stands open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from torchlens.drawing.channels import as_number, channel_of, unit_value
from torchlens.drawing.collapse import Level, at, closed_at, levels, search
from torchlens.drawing.fold import Run, Shape, close_deeper, fold_repeats, show
from torchlens.drawing.graph import Graph, Scope, Unit, build
from torchlens.drawing.settings import Settings
from torchlens.errors import InvalidArgumentError, nearest, warn
from torchlens.trace.op import Op
from torchlens.trace.parts import Call, Module

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace

_NORMS = frozenset(["batch_norm", "instance_norm", "native_batch_norm"])


class Plan(NamedTuple):
    """The visible graph and how it was chosen.

    ``level`` is the collapse level used, ``None`` if none was asked for; ``in_band`` whether a search
    for a legible one succeeded.
    """

    shape: Shape
    runs: list[Run]
    level: Level | None = None
    full: int = 0
    in_band: bool = True


# -- who takes part ----------------------------------------------------------------------------


def is_statistic(op: Op) -> bool:
    """Whether a buffer only holds running statistics of a normalisation."""
    if op.address.rsplit(".", 1)[-1] == "num_batches_tracked":
        return True
    return bool(op.children_edges) and all(edge.child.type in _NORMS for edge in op.children_edges)


def hidden(op: Op, settings: Settings, orphans: set[int]) -> str:
    """Why an op is left out: ``"orphan"``, ``"buffer"``, or ``""`` if it is drawn."""
    if op.step in orphans and not settings["show_orphans"] and not op.failed:
        return "orphan"
    if op.kind == "buffer":
        kind = settings["show_buffers"]
        if kind == "never" or (kind == "meaningful" and is_statistic(op)):
            return "buffer"
    return ""


def graph_of(trace: Trace, settings: Settings) -> Graph:
    """The graph of a trace under the settings."""
    orphans = trace._orphans if trace.completed else set()
    return build(trace, rolled=settings["rolled"], keep=lambda op: not hidden(op, settings, orphans))


# -- what is open ------------------------------------------------------------------------------


def plan(graph: Graph, settings: Settings) -> Plan:
    """Fold, collapse and focus a graph as the settings say."""
    runs = fold_repeats(graph) if settings["fold_repeats"] else []
    focus = focus_of(graph, settings["module"]) if settings["module"] is not None else []
    level, full, in_band, closed = None, 0, True, set()
    collapse = settings["collapse"]
    if settings["depth"] is not None:
        closed = close_deeper(graph, depth=settings["depth"] + _depth_of(focus))
    elif collapse != "none" and not (collapse == "auto" and focus):
        has_value = _has_value(graph, settings)
        table = levels(graph, runs, has_value=has_value or (lambda unit: False))
        full = table[0].visible
        if collapse == "auto":
            level, in_band = search(table, keep_values=has_value is not None)
        else:
            level = at(table, collapse)
        closed = closed_at(graph, level.size)
    if not in_band and level is not None:
        warn(
            f"No collapse level leaves 100 to 220 nodes; {level.visible} are drawn.",
            code="view_collapse_band_missed",
            remedy="Pass collapse= with a level from 0 to 1, or depth=.",
            stacklevel=5,
        )
    return Plan(show(graph, closed=closed, runs=runs, focus=focus), runs, level, full, in_band)


def _has_value(graph: Graph, settings: Settings) -> Callable[[Unit], bool] | None:
    by = settings["color_by"]
    if by is None:
        return None
    if callable(by):
        return lambda unit: unit.op.kind == "call"
    channel = channel_of(by, graph.trace)
    return lambda unit: as_number(unit_value(channel, unit, rolled=graph.rolled)) is not None


def _depth_of(focus: list[Scope | Unit]) -> int:
    return max((item.depth for item in focus if isinstance(item, Scope)), default=0)


# -- focus -------------------------------------------------------------------------------------


def calls_of(trace: Trace, module: str | Module) -> list[Call]:
    """The calls that ``module=`` means: all of a module, or the one that ``address:pass`` names."""
    if isinstance(module, Module):
        if not any(module is known for known in trace.modules):
            raise _no_module(trace, module.address, "belongs to another trace")
        return module.calls
    for known in trace.modules:
        if module in known.addresses:
            return known.calls
    found = [call for call in trace.calls if call.label == module]
    if not found:
        raise _no_module(trace, module, "names no module")
    return found


def _no_module(trace: Trace, address: str, problem: str) -> InvalidArgumentError:
    names = [name for module in trace.modules for name in module.addresses if name]
    near = nearest(address, names)
    remedy = f"Closest: {', '.join(near)}." if near else "print(trace.summary()) lists the modules."
    return InvalidArgumentError(
        f"module={address!r} {problem} of {trace.name}.",
        code="draw_module_invalid",
        argument="module",
        value=address,
        remedy=remedy,
    )


def check_module(trace: Trace, module: str | Module) -> None:
    """Refuse a module that the trace does not have, or that ran no op."""
    if not any(call.ops for call in calls_of(trace, module)):
        raise _no_module(trace, str(module), "ran no op: there is nothing to draw inside of it;")


def focus_of(graph: Graph, module: str | Module) -> list[Scope | Unit]:
    """The scopes, or the units of leaf modules, that a module's calls are drawn as."""
    wanted = {call.index for call in calls_of(graph.trace, module)}
    found: list[Scope | Unit] = []
    stack: list[Scope] = [graph.root]
    while stack:
        scope = stack.pop()
        if any(call.index in wanted for call in (*scope.calls, *scope.wrappers)):
            found += [scope] if scope is not graph.root else scope.items
            continue
        for item in scope.items:
            if isinstance(item, Scope):
                stack.append(item)
            elif any(index in wanted for index in _calls_around(item, scope)):
                found.append(item)
    return found


def _calls_around(unit: Unit, scope: Scope) -> list[int]:
    """The calls around a unit that are not drawn as a scope of their own."""
    drawn = {call.index for call in scope.calls}
    found, call = [], unit.op.call
    while call is not None and call.index not in drawn:
        found.append(call.index)
        call = call.parent
    return found
