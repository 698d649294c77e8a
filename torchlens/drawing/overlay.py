"""What channels, marks and views lay over the nodes of a drawing."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchlens.drawing.assemble import Overlay
from torchlens.drawing.attention import role_marks
from torchlens.drawing.channels import Reading, channel_of, measure, step_of
from torchlens.drawing.columns import columns
from torchlens.drawing.edits import change_marks
from torchlens.drawing.fold import Shape, Shown
from torchlens.drawing.graph import Unit
from torchlens.drawing.marks import Mark, nonfinite_mark
from torchlens.drawing.scene import Row
from torchlens.drawing.settings import Settings
from torchlens.drawing.themes import THEMES

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace

PLAIN = (100.0, 40.0)
"""Width and height of a plain box where size shows a value."""
LARGEST = 4.0
"""Area of the largest box in plain boxes."""
DOT = 5.0
"""Least side of a box, so that it can be seen at all."""


@dataclass(slots=True)
class Layers:
    """The overlay of a drawing, and the readings behind it for caption and legend."""

    overlay: Overlay
    color: Reading | None = None
    size: Reading | None = None
    dots: int = 0
    usual: str = ""
    marks_used: dict[str, int] = field(default_factory=dict)


def layers_of(shape: Shape, settings: Settings) -> Layers:
    """Read the channels of a visible graph and turn them into colours and sizes."""
    layers = Layers(Overlay())
    nodes = [node for node in shape.nodes if node.kind == "unit" and not node.stub]
    if settings["color_by"] is not None:
        layers.color = _reading(shape, nodes, settings, "color_by")
        layers.overlay.channel = _colors(shape, layers.color, settings)
    if settings["size_by"] is not None:
        layers.size = _reading(shape, nodes, settings, "size_by")
        sizes = _sizes(layers.size)
        layers.dots = sum(dot for _, dot in sizes.values())
        layers.overlay.channel = {
            node: {**layers.overlay.channel.get(node, {}), **_size(node, sizes)} for node in shape.nodes
        }
    if settings["stack_by"] is not None:
        layers.overlay.columns, layers.overlay.box_columns = columns(shape, settings["stack_by"])
    if settings["view"] == "debug":
        add_states(layers, shape)
    elif settings["view"] == "transformer":
        layers.overlay.styling, layers.overlay.edge_heads = role_marks(shape, settings)
    elif settings["view"] == "interventions":
        layers.overlay.marks = change_marks(shape, settings)
        for mark in layers.overlay.marks.values():
            layers.marks_used[mark.kind] = layers.marks_used.get(mark.kind, 0) + 1
    return layers


def _reading(shape: Shape, nodes: list[Shown], settings: Settings, name: str) -> Reading:
    by = settings[name]
    channel = channel_of(by, shape.graph.trace)
    return measure(
        channel,
        [node.unit for node in nodes],
        scale=scale_of(settings, name),
        rolled=shape.graph.rolled,
        function=by if callable(by) else None,
        also=name == "size_by",
    )


def scale_of(settings: Settings, name: str) -> str:
    """Scale of a channel: a given one belongs to the colour, or to the size where nothing is coloured."""
    given = settings["scale"]
    if name == "color_by":
        return given or "rank"
    return given if given and settings.explicit("scale") and settings["color_by"] is None else "sqrt"


def _colors(shape: Shape, reading: Reading, settings: Settings) -> dict[Shown, dict[str, Any]]:
    theme = THEMES[settings["theme"]]
    ramp, neutral = theme.ramp, theme.roles["aggregate"].fill
    found: dict[Shown, dict[str, Any]] = {}
    for node in shape.nodes:
        if node.stub:
            continue
        if node.kind != "unit":
            found[node] = {"fill": neutral}
        elif node.unit in reading.positions:
            step = step_of(reading.positions[node.unit], len(ramp))
            found[node] = {"fill": ramp[step]}
        elif node.unit.op.kind == "call":
            found[node] = {"fill": theme.node_fill}
    return found


def _sizes(reading: Reading) -> dict[Unit, tuple[tuple[float, float], bool]]:
    """Width and height of each unit with a value, and whether it had to be enlarged to a dot."""
    values = {unit: value for unit, value in reading.values.items() if value >= 0}
    if not values:
        return {}
    most = max(values.values())
    equal = len(set(values.values())) == 1
    found = {}
    for unit, value in values.items():
        share = _share(value, most, reading, unit)
        factor = 1.0 if equal else math.sqrt(LARGEST) * share
        width, height = PLAIN[0] * factor, PLAIN[1] * factor
        found[unit] = ((max(width, DOT), max(height, DOT)), height < DOT)
    return found


def _share(value: float, most: float, reading: Reading, unit: Unit) -> float:
    """Side of a box as a share of the largest: its area follows the value on the square-root scale."""
    if reading.scale == "sqrt":
        return math.sqrt(value / most) if most else 0.0
    if reading.scale == "linear":
        return value / most if most else 0.0
    return 0.25 + 0.75 * reading.positions.get(unit, 0.0)


def _size(node: Shown, sizes: dict[Unit, tuple[tuple[float, float], bool]]) -> dict[str, Any]:
    if node.kind != "unit" or node.stub or node.unit not in sizes:
        return {}
    return {"size": sizes[node.unit][0], "shape": "box"}


# -- debug -------------------------------------------------------------------------------------


def add_states(layers: Layers, shape: Shape) -> None:
    """Mark nonfinite outputs, and label what is not of the usual dtype and device."""
    trace = shape.graph.trace
    any_checked = any(op.nonfinite is not None for op in trace.ops)
    usual_dtype, usual_device = usual_kind(trace)
    layers.usual = " on ".join(part for part in (usual_dtype, usual_device) if part)
    marks: dict[Shown, Mark] = {}
    for node in shape.nodes:
        mark = nonfinite_mark(node) if any_checked else Mark()
        if mark.look.get("motif"):
            state = mark.look["motif"]
            layers.marks_used[state] = layers.marks_used.get(state, 0) + 1
        odd = _odd_kind(node, usual_dtype, usual_device)
        if odd:
            mark.rows = [*mark.rows, Row(odd, "detail")]
        if mark.look or mark.rows:
            marks[node] = mark
    layers.overlay.marks = marks


def usual_kind(trace: Trace) -> tuple[str, str]:
    """The dtype and device of most outputs."""
    dtypes: Counter[str] = Counter()
    devices: Counter[str] = Counter()
    for op in trace.ops:
        if op.dtype is not None:
            dtypes[_plain(op.dtype)] += 1
            devices[str(op.device)] += 1
    return _commonest(dtypes), _commonest(devices)


def _commonest(counts: Counter[str]) -> str:
    return counts.most_common(1)[0][0] if counts else ""


def _plain(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _odd_kind(node: Shown, usual_dtype: str, usual_device: str) -> str:
    if node.kind != "unit" or node.stub:
        return ""
    op = node.unit.op
    parts = []
    if op.dtype is not None and _plain(op.dtype) != usual_dtype:
        parts.append(_plain(op.dtype))
    if op.device is not None and str(op.device) != usual_device:
        parts.append(str(op.device))
    return " on ".join(parts)
