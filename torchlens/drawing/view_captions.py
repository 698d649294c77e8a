"""What each view says of itself under the header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from torchlens.drawing.captions import top_lines
from torchlens.drawing.channels import measure
from torchlens.drawing.marks import NONFINITE
from torchlens.drawing.overlay import Layers
from torchlens.drawing.plan import Plan
from torchlens.drawing.rows import counted
from torchlens.drawing.settings import Settings

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.trace import Trace


def view_lines(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    """Caption lines that only one view has, before those that every drawing has."""
    lines = _FIRST.get(settings["view"])
    return lines(plan, layers, settings) if lines is not None else []


def closing_lines(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    """Caption lines that follow what colour and size show."""
    lines = _AFTER.get(settings["view"])
    return lines(plan, layers, settings) if lines is not None else []


def _trace(plan: Plan) -> Trace:
    return plan.shape.graph.trace


# -- speed, memory, compute --------------------------------------------------------------------


def _speed(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    line = f"Times: {_runs(_trace(plan))}; compare ops with each other, not with production latency."
    return [line, *_top(plan, layers, settings)]


def _runs(trace: Trace) -> str:
    timing = trace.recording.timing
    how = "one instrumented run" if timing.runs < 2 else f"median of {timing.runs} instrumented runs"
    after = f" after {counted(timing.warmup, 'warm-up')}" if timing.warmup else ", no warm-up"
    return how + after + (", device time from events" if timing.clock != "cpu" else "")


def _memory(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    ops = [op for op in _trace(plan).ops if op.kind == "call"]
    aliases = sum(op.is_alias for op in ops)
    lines = []
    if aliases:
        lines.append(
            f"{counted(aliases, 'op')} of {len(ops)} return a view of their input, or the input itself, "
            "and take no memory."
        )
    if all(op.saved_for_backward is None for op in ops):
        lines.append("What autograd keeps for backward is unknown: the run recorded no gradients.")
    return lines + _top(plan, layers, settings)


def _compute(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    unknown = _trace(plan).totals.unknown_flops
    lines = ["One multiply-add counts as two FLOPs."]
    if unknown:
        lines.append(f"The FLOPs of {counted(unknown, 'op')} are unknown and not counted as 0.")
    return lines + _top(plan, layers, settings)


def _top(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    """The largest values of all ops, drawn or not."""
    if layers.color is None:
        return []
    by, graph = settings["color_by"], plan.shape.graph
    function = by if callable(by) else None
    channel = layers.color.channel
    every = measure(channel, graph.units, scale="linear", rolled=graph.rolled, function=function)
    return top_lines(every)


# -- debug -------------------------------------------------------------------------------------


def _debug(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    ops = [op for op in _trace(plan).ops if op.records]
    checked = [op for op in ops if op.nonfinite is not None]
    lines = []
    if not checked:
        lines.append("No values were kept, so no output was checked for NaN or Inf.")
    else:
        lines.append(_checked(ops, checked))
        lines += _first(checked)
    if layers.usual:
        lines.append(f"Unless labelled otherwise, tensors are {layers.usual}.")
    return lines


def _checked(ops: list[Op], checked: list[Op]) -> str:
    found = Counter(op.nonfinite for op in checked if op.nonfinite in NONFINITE)
    kinds = ", ".join(f"{found[state]} {text}" for state, (text, _) in NONFINITE.items() if found[state])
    line = f"Checked {len(checked)} of {len(ops)} outputs for NaN, +Inf and -Inf: {kinds or 'all finite'}."
    return line + (" Unchecked nodes are dashed." if len(checked) < len(ops) else "")


def _first(checked: list[Op]) -> list[str]:
    first = next((op for op in checked if op.nonfinite in NONFINITE), None)
    if first is None or first.nonfinite is None:
        return []
    where = f" in {first.call.label}" if first.call is not None and first.call.module.address else ""
    code = f" ({first.code.file.rsplit('/', 1)[-1]}:{first.code.line})" if first.code is not None else ""
    return [f"First: {first.label}{where}, {NONFINITE[first.nonfinite][0]}{code}."]


# -- dims, sequence ----------------------------------------------------------------------------


def _dims(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    if layers.size is None or layers.size.channel.name != "dims" or layers.size.all_equal:
        return []
    return ["Box area shows element count, not shape: 512x7x7 and 128x14x14 draw the same size."]


def _sequence(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    most = max(layer.num_passes for layer in _trace(plan).layers)
    several = sum(layer.num_passes > 1 for layer in _trace(plan).layers)
    lines = [f"{counted(several, 'layer')} ran more than once, at most {most} times."]
    if settings["stack_by"] is not None:
        lines.append("Boxes side by side ran in the same pass, not in parallel.")
    return lines


# -- transformer, interventions ----------------------------------------------------------------


def _transformer(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    from torchlens.drawing.attention import focus_lines

    return focus_lines(_trace(plan), settings)


def _interventions(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    from torchlens.drawing.edits import caption_lines

    return caption_lines(_trace(plan))


Lines = Callable[[Plan, Layers, Settings], list[str]]

_FIRST: Mapping[str, Lines] = {
    "debug": _debug,
    "sequence": _sequence,
    "transformer": _transformer,
    "interventions": _interventions,
}
_AFTER: Mapping[str, Lines] = {"speed": _speed, "memory": _memory, "compute": _compute, "dims": _dims}
