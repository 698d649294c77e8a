"""Channels: a value per node, shown as colour or size.

A channel is a name, what it measures, and how a value prints.  A value is a number or ``None``; what is
missing, not a number, or not finite is never drawn as if it were small.
"""

from __future__ import annotations

import math
import numbers
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchlens.drawing.graph import Unit
from torchlens.errors import InvalidArgumentError, nearest, short
from torchlens.trace.op import Op
from torchlens.trace.quantities import Bytes, Count, Duration, Flops

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace

Value = float | int | None


@dataclass(frozen=True, slots=True)
class Channel:
    """What a channel shows.

    ``of_op`` reads one op's value; ``total`` says that the passes of a layer add up; ``show`` prints a
    value with its unit.
    """

    name: str
    title: str
    of_op: Callable[[Op], Any]
    show: Callable[[float], str]
    total: bool = True


def _number(value: float) -> str:
    return str(Count(int(value))) if float(value).is_integer() else f"{value:.4g}"


def _params(op: Op) -> int | None:
    return sum(int(param.numel) for param in op.params) if op.kind == "call" else None


def _pass(op: Op) -> int | None:
    return op.pass_index if op.num_passes > 1 else None


CHANNELS: Mapping[str, Channel] = {
    "time": Channel("time", "time", lambda op: op.func_duration, lambda v: str(Duration(v))),
    "bytes": Channel("bytes", "output memory", lambda op: op.bytes, lambda v: str(Bytes(v))),
    "flops": Channel("flops", "FLOPs", lambda op: op.flops, lambda v: str(Flops(v))),
    "params": Channel("params", "params", _params, _number, total=False),
    "dims": Channel("dims", "elements per batch item", lambda op: None, _number, total=False),
    "saved_for_backward": Channel(
        "saved_for_backward",
        "saved for backward",
        lambda op: op.saved_for_backward,
        lambda v: str(Bytes(v)),
    ),
    "pass": Channel("pass", "pass", _pass, _number, total=False),
}


def check_channel(argument: str, value: Any) -> None:
    """Refuse what names no channel, no field of :class:`Op`, and cannot be called."""
    if callable(value) or (isinstance(value, str) and (value in CHANNELS or value in _fields())):
        return
    near = nearest(value, [*CHANNELS, *_fields()], count=1) if isinstance(value, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InvalidArgumentError(
        f"{argument}={short(value)} is not known.{hint}",
        code=f"draw_{argument}_invalid",
        argument=argument,
        value=value,
        remedy=f"Choose one of: {', '.join(map(repr, CHANNELS))}; a numeric field of Op; or pass a function "
        "of a node that returns a number.",
    )


def _fields() -> list[str]:
    names = [name for name in dir(Op) if not name.startswith("_") and not callable(getattr(Op, name))]
    return [name for name in names if name not in ("out", "args", "kwargs")]


def channel_of(value: str | Callable[[Any], Any], trace: Trace) -> Channel:
    """The channel that a checked ``color_by`` or ``size_by`` means."""
    if callable(value):
        name = getattr(value, "__name__", "value").replace("<lambda>", "value")
        return Channel(name, name, lambda op: None, _number, total=False)
    if value == "dims":
        dims = per_item(trace)
        return Channel("dims", dims.title, dims.of, _number, total=False)
    known = CHANNELS.get(value)
    if known is not None:
        return known
    return Channel(value, value.replace("_", " "), lambda op: getattr(op, value), _number)


def unit_value(channel: Channel, unit: Unit, *, rolled: bool) -> Any:
    """The raw value of a unit; in a rolled drawing the total over its passes."""
    if len(unit.ops) == 1:
        return channel.of_op(unit.op)
    if channel.name == "pass" and rolled:
        return len(unit.ops)
    values = [channel.of_op(op) for op in unit.ops]
    if not channel.total:
        return values[0]
    return None if any(value is None for value in values) else sum(values)


def called(function: Callable[[Any], Any], part: Any) -> Any:
    """The value that a user's function gives a node; its own exception names the node."""
    try:
        return function(part)
    except Exception as error:
        if hasattr(error, "add_note"):
            error.add_note(f"torchlens: raised for the node {part.label!r}")
        raise


def as_number(value: Any) -> float | None:
    """A finite number, or ``None``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


# -- scales ------------------------------------------------------------------------------------


def positions(values: Sequence[float], scale: str) -> list[float]:
    """Where each value stands on a scale from 0 to 1; equal values stand at one place."""
    if not values:
        return []
    if scale == "rank":
        order = sorted(set(values))
        rank = {value: position for position, value in enumerate(order)}
        return [rank[value] / max(1, len(order) - 1) for value in values]
    bend = _BENDS[scale]
    low = min(values)
    start = min(0.0, low) if scale != "log" else low
    bent = [bend(value - start) if scale != "log" else _log(value, values) for value in values]
    least, most = min(bent), max(bent)
    return [(value - least) / (most - least) if most > least else 0.0 for value in bent]


_BENDS: Mapping[str, Callable[[float], float]] = {
    "linear": lambda value: value,
    "sqrt": math.sqrt,
    "log": lambda value: value,
}


def _log(value: float, values: Sequence[float]) -> float:
    """Logarithm; what is not positive stands at the place of the least positive value."""
    least = min((v for v in values if v > 0), default=1.0)
    return math.log(max(value, least))


def step_of(position: float, steps: int) -> int:
    """Index of the ramp step at a position from 0 to 1."""
    return min(steps - 1, int(position * steps)) if position < 1 else steps - 1


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of a channel over a drawing.

    ``positions`` is empty where nothing can be encoded; ``odd`` counts values that are no finite number.
    """

    channel: Channel
    scale: str
    values: Mapping[Unit, float]
    positions: Mapping[Unit, float]
    missing: int
    odd: int

    @property
    def all_equal(self) -> bool:
        """Whether there are values but only one."""
        return len(self.values) > 1 and len(set(self.values.values())) == 1

    def summary(self) -> tuple[str, str, str]:
        """True minimum, median and maximum as people write them."""
        found = sorted(self.values.values())
        show = self.channel.show
        return show(found[0]), show(statistics.median(found)), show(found[-1])


def measure(
    channel: Channel,
    units: Sequence[Unit],
    *,
    scale: str,
    rolled: bool,
    function: Callable[[Any], Any] | None = None,
    also: bool = False,
) -> Reading:
    """Read a channel at the units that are calls, and place the values on a scale.

    ``also`` reads inputs, outputs, buffers and constants as well, without counting them as ops.
    """
    values: dict[Unit, float] = {}
    missing = odd = 0
    for unit in units:
        is_call = unit.op.kind == "call"
        if not is_call and not also:
            continue
        raw = called(function, unit.part) if function else unit_value(channel, unit, rolled=rolled)
        number = as_number(raw)
        if number is not None:
            values[unit] = number
        elif not is_call:
            continue
        elif raw is None:
            missing += 1
        else:
            odd += 1
    spread = len(set(values.values())) > 1 or len(values) == 1
    found = dict(zip(values, positions(list(values.values()), scale))) if spread else {}
    return Reading(channel, scale, values, found, missing, odd)


# -- elements per batch item -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PerItem:
    """Element counts per batch item; ``batch`` is 1 where no common batch size is known."""

    batch: int
    reached: frozenset[int]

    @property
    def title(self) -> str:
        """What the count is called."""
        return "elements per batch item" if self.batch > 1 else "elements"

    def of(self, op: Op) -> int | None:
        """Elements of all outputs of an op."""
        total = elements(op)
        if total is None or self.batch == 1 or op.step not in self.reached or total % self.batch:
            return total
        return total // self.batch


def elements(op: Op) -> int | None:
    """Elements of all outputs, or ``None`` if a shape is unknown."""
    shapes = op.shapes
    if not shapes or any(shape is None for shape in shapes):
        return None
    return sum(math.prod(shape) for shape in shapes if shape is not None)


def per_item(trace: Trace) -> PerItem:
    """Find the batch size: the leading size that all inputs share and nearly all outputs are made of."""
    shapes = [op.shape for op in trace.inputs if op.shape and len(op.shape) > 1]
    leading = {shape[0] for shape in shapes if shape is not None}
    reached = frozenset(reached_from_inputs(trace))
    if len(leading) != 1 or (batch := leading.pop()) < 2:
        return PerItem(1, reached)
    counts = [elements(trace.ops[step]) for step in reached]
    known = [count for count in counts if count is not None and count > 1]
    fitting = sum(count % batch == 0 for count in known)
    return PerItem(batch if known and fitting >= 0.9 * len(known) else 1, reached)


def reached_from_inputs(trace: Trace) -> set[int]:
    """Steps of the ops that some input reaches."""
    reached: set[int] = set()
    for op in trace.ops:
        if op.kind == "input" or any(edge.parent.step in reached for edge in op.inputs):
            reached.add(op.step)
    return reached
