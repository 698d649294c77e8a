"""Header and caption: what a drawing shows, and what it leaves out, in plain sentences."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchlens.drawing.channels import Reading
from torchlens.drawing.overlay import Layers
from torchlens.drawing.plan import Plan, hidden
from torchlens.drawing.rows import class_of, counted, shape_text
from torchlens.drawing.settings import Settings

if TYPE_CHECKING:
    from torchlens.drawing.graph import Unit
    from torchlens.trace.trace import Trace

WIDEST = 100
"""Letters in a line."""
LISTED = 5
TIED = "\u00a0"
"""A space at which no line breaks."""


def wrapped(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines of at most 100 letters, broken between words that are not tied."""
    parts = (part for line in lines for part in textwrap.wrap(line, WIDEST, break_on_hyphens=False))
    return tuple(part.replace(TIED, " ") for part in parts)


def header_lines(trace: Trace) -> tuple[str, ...]:
    """Ops, params and input shapes."""
    totals = trace.totals
    share = (
        "all trainable"
        if totals.params == totals.trainable_params
        else f"{totals.trainable_params} trainable"
    )
    params = f"{totals.params} params ({share})" if totals.params else "no params"
    inputs = [f"{op.address} {shape_text(op.shape)}" for op in trace.inputs]
    more = f" and {len(inputs) - 4} more" if len(inputs) > 4 else ""
    given = f"input {', '.join(inputs[:4])}{more}" if inputs else "no tensor input"
    return wrapped([f"{totals.ops} ops · {params} · {given}"])


# -- what every drawing says -------------------------------------------------------------------


def general_lines(plan: Plan, settings: Settings, stubs: int) -> list[str]:
    """What is left out, closed, folded or drawn as tags, whichever applies."""
    return [
        *_fake(plan.shape.graph.trace),
        *_failure(plan.shape.graph.trace),
        *_focus(plan, settings),
        *_rolled(plan),
        *_closed(plan, settings),
        *_left_out(plan.shape.graph.trace, settings),
        *_tags(stubs, settings),
        *settings.notes,
    ]


def _fake(trace: Trace) -> list[str]:
    if not trace.recording.fake:
        return []
    return ["Shapes only: nothing was computed, so there are no times and no values."]


def _failure(trace: Trace) -> list[str]:
    if trace.failure is None:
        return []
    error = trace.failure.exception
    text = str(error).strip().split("\n")[0]
    text = text if len(text) < 120 else text[:119] + "…"
    return [f"The run stopped with {type(error).__name__}: {text}"]


def _focus(plan: Plan, settings: Settings) -> list[str]:
    if settings["module"] is None:
        return []
    outside = len(plan.shape.outside)
    name = str(settings["module"]) or plan.shape.graph.trace.name
    line = f"Only the inside of {name} is drawn, with its neighbours dashed."
    return [line + (f" {counted(outside, 'other node is', 'other nodes are')} not drawn." if outside else "")]


def _rolled(plan: Plan) -> list[str]:
    if not plan.shape.graph.rolled or not any(len(unit.ops) > 1 for unit in plan.shape.graph.units):
        return []
    return ["Ops that ran several times are one node; (x4) says how often."]


def _closed(plan: Plan, settings: Settings) -> list[str]:
    shape = plan.shape
    calls = sum(node.kind == "call" and not node.stub for node in shape.nodes)
    lines = []
    if plan.level is not None and plan.level.size:
        lines.append(
            f"Collapse level {plan.level.level:.3g}: modules of up to {plan.level.size} nodes are closed "
            f"({counted(calls, 'closed box', 'closed boxes')}, {len(shape.nodes)} of {plan.full} nodes)."
        )
    elif calls:
        depth = settings["depth"]
        reason = f"Modules nested deeper than {depth} are" if depth is not None else "Some modules are"
        lines.append(f"{reason} drawn closed ({counted(calls, 'closed box', 'closed boxes')}).")
    if not plan.in_band:
        lines.append("No collapse level leaves between 100 and 220 nodes; this one is the nearest.")
    folded = Counter(
        class_of(node.scopes[0]) for node in shape.nodes if node.kind == "run" for _ in node.scopes
    )
    if folded:
        names = ", ".join(f"{count} {name}" for name, count in folded.most_common(3))
        lines.append(f"Of equal neighbours the first is drawn; the others are one node each run ({names}).")
    return lines


def _left_out(trace: Trace, settings: Settings) -> list[str]:
    orphans = trace._orphans if trace.completed else set()
    reasons = Counter(hidden(op, settings, orphans) for op in trace.ops)
    parts = []
    if reasons["orphan"]:
        parts.append(
            f"{counted(reasons['orphan'], 'op')} joined to no input or output (show_orphans=True draws them)"
        )
    if reasons["buffer"]:
        parts.append(f'{counted(reasons["buffer"], "buffer")} (show_buffers="always" draws them)')
    return [f"Not drawn: {'; '.join(parts)}."] if parts else []


def _tags(stubs: int, settings: Settings) -> list[str]:
    if not stubs:
        return []
    hint = "" if settings["long_edges"] == "stub" else ' (long_edges="line" draws all lines)'
    return [f"{counted(stubs, 'far-reaching edge is', 'far-reaching edges are')} drawn as named tags{hint}."]


# -- channels ----------------------------------------------------------------------------------


def channel_lines(layers: Layers, plan: Plan, settings: Settings) -> list[str]:
    """Coverage, scale, sums and aggregates of colour and size."""
    lines = []
    if layers.color is not None:
        lines += _color(layers.color, plan, settings)
    if layers.size is not None:
        lines += _size(layers, plan)
    return lines


def coverage(reading: Reading, plan: Plan) -> str:
    """``encoded N of M ops``."""
    shown = sum(len(unit.ops) for unit in reading.positions if unit.op.kind == "call")
    return f"encoded {shown} of {plan.shape.graph.trace.totals.ops} ops"


def _color(reading: Reading, plan: Plan, settings: Settings) -> list[str]:
    title = reading.channel.title
    if not reading.values:
        return [f"Colour: no op drawn has a value for {title}; {coverage(reading, plan)}."]
    if reading.all_equal:
        value = reading.channel.show(next(iter(reading.values.values())))
        return [
            f"Colour: every op has the same {title} ({value}), so none is coloured; "
            f"{coverage(reading, plan)}."
        ]
    how = "rank order, not proportion" if reading.scale == "rank" else f"{reading.scale} scale"
    lines = [f"Colour: {title}, {how}; {coverage(reading, plan)}{_uncoloured(reading)}."]
    if plan.shape.graph.rolled and reading.channel.total and _several(plan):
        lines.append("Each value is summed over passes.")
    if any(node.kind != "unit" and not node.stub for node in plan.shape.nodes):
        lines.append("Closed boxes have a neutral fill: they stand for several ops and are not encoded.")
    return lines


def _uncoloured(reading: Reading) -> str:
    parts = []
    if reading.missing:
        parts.append(f"{reading.missing} without a value")
    if reading.odd:
        parts.append(f"{reading.odd} with one that is no finite number")
    return f" ({' and '.join(parts)} left uncoloured)" if parts else ""


def _several(plan: Plan) -> bool:
    return any(len(unit.ops) > 1 for unit in plan.shape.graph.units)


def _size(layers: Layers, plan: Plan) -> list[str]:
    reading = layers.size
    assert reading is not None
    title = reading.channel.title
    if reading.all_equal:
        return [f"Size: every box has the same {title}, so all are of one size."]
    what = {
        "sqrt": f"box area is proportional to {title}",
        "linear": f"box sides are proportional to {title}",
    }
    lines = [f"Size: {what.get(reading.scale, f'box sides follow {title}, {reading.scale} scale')}."]
    if layers.dots:
        lines.append(
            f"{counted(layers.dots, 'box', 'boxes')} would be too small to see and are drawn as dots."
        )
    return lines


def top_lines(reading: Reading, *, count: int = LISTED) -> list[str]:
    """The largest values with their share of the total."""
    total = sum(reading.values.values())
    if not total or len(reading.values) < 2:
        return []
    best = sorted(reading.values.items(), key=lambda item: (-item[1], item[0].number))[:count]
    parts = [
        f"{unit_name(unit)} {reading.channel.show(value)} ({100 * value / total:.0f}%)"
        for unit, value in best
    ]
    return [f"Largest: {', '.join(part.replace(' ', TIED) for part in parts)}."]


def unit_name(unit: Unit) -> str:
    """How a sentence names a unit."""
    call = unit.leaf[0] if unit.leaf else (unit.op.call if unit.params else None)
    address = call.label if call is not None and call.module.address else ""
    return f"{unit.op.type} {address}" if address else unit.part.label
