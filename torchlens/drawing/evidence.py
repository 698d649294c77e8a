"""Whether a trace holds what a view is about: refusals, and settings that have to be dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from torchlens.drawing.attention import find_focus
from torchlens.drawing.channels import elements
from torchlens.drawing.plan import check_module
from torchlens.drawing.settings import Settings
from torchlens.errors import InvalidArgumentError, warn
from torchlens.interventions.census import census_text

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace


def check(trace: Trace, settings: Settings) -> Settings:
    """Refuse what this trace cannot show, and drop what a view wants but the trace does not allow."""
    view = settings["view"]
    if view in _CHECKS:
        _CHECKS[view](trace)
    if view == "transformer" and not settings.explicit("module"):
        settings = settings.replaced("module", _block(trace))
    if view == "debug" and not any(op.nonfinite is not None for op in trace.ops):
        warn(
            "No values were kept, so nothing was checked for NaN or Inf.",
            code="view_nonfinite_not_checked",
            remedy='Trace with save=True, or with check_finite="capture".',
            stacklevel=5,
        )
    if settings["module"] is not None:
        check_module(trace, settings["module"])
    settings = _rolled(trace, settings)
    _check_sizes(trace, settings)
    return _stacking(trace, settings)


def _missing(view: str, problem: str, remedy: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"view={view!r} has nothing to show: {problem}.",
        code="view_evidence_missing",
        argument="view",
        value=view,
        remedy=remedy,
    )


def _absent(view: str, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"view={view!r} does not fit this model: {problem}.",
        code="view_subject_absent",
        argument="view",
        value=view,
        remedy='Leave view out, or pass view="overview": both draw any model.',
    )


def _speed(trace: Trace) -> None:
    if not any(op.func_duration is not None for op in trace.ops):
        raise _missing("speed", "no op was timed", "Trace a real run of the model, without fake=True.")


def _memory(trace: Trace) -> None:
    if not any(op.kind == "call" and op.bytes is not None for op in trace.ops):
        raise _missing("memory", "no op has a size", "Trace a forward that computes tensors.")


def _compute(trace: Trace) -> None:
    if not any(op.flops for op in trace.ops):
        raise _missing(
            "compute", "no op has a known FLOP count above 0", 'Pass view="speed" to see where the time goes.'
        )


def _dims(trace: Trace) -> None:
    if not any(op.kind == "call" and elements(op) is not None for op in trace.ops):
        raise _missing("dims", "no op has a shape", "Trace a forward that computes tensors.")


def _block(trace: Trace) -> str:
    focus = find_focus(trace)
    if focus is None:
        raise _absent("transformer", "no repeated block holds attention")
    return focus.call.label


def _sequence(trace: Trace) -> None:
    if not trace.is_recurrent:
        raise _absent("sequence", "no layer ran more than once")


def _interventions(trace: Trace) -> None:
    if not trace.edits and trace.parent is None:
        raise _missing(
            "interventions",
            "the trace records no edit",
            "Edit a fork of the trace first, with trace.fork().do(...).",
        )


_CHECKS: Mapping[str, Callable[[Trace], None]] = {
    "speed": _speed,
    "memory": _memory,
    "compute": _compute,
    "dims": _dims,
    "sequence": _sequence,
    "interventions": _interventions,
}


# -- settings that a trace does not allow ------------------------------------------------------


def _rolled(trace: Trace, settings: Settings) -> Settings:
    """A model with one pass everywhere is the same rolled and unrolled: draw its ops."""
    if settings["rolled"] and not settings.explicit("rolled") and not trace.is_recurrent:
        return settings.replaced("rolled", False)
    return settings


def _check_sizes(trace: Trace, settings: Settings) -> None:
    by = settings["size_by"]
    if not settings["rolled"] or by is None or callable(by) or by not in ("dims", "shape"):
        return
    for layer in trace.layers:
        if len({elements(op) for op in layer.ops}) > 1:
            raise InvalidArgumentError(
                f"size_by={by!r} contradicts rolled=True: the passes of {layer.label!r} differ in shape.",
                code="draw_size_by_rolled",
                argument="size_by",
                value=by,
                remedy="Pass rolled=False, or another size_by.",
            )


def _stacking(trace: Trace, settings: Settings) -> Settings:
    if settings["stack_by"] != "pass":
        return settings
    if settings["rolled"]:
        return dropped(settings, "stack_by", "a rolled drawing has all passes in one node")
    if passes_interleave(trace):
        return dropped(settings, "stack_by", "the passes of different layers interleave")
    return settings


def dropped(settings: Settings, name: str, reason: str) -> Settings:
    """Settings without one that a view wanted, with a warning and a note for the caption."""
    warn(
        f"{name}={settings[name]!r} was dropped: {reason}.",
        code="view_secondary_degraded",
        remedy="A function as stack_by= may group ops in another way.",
        stacklevel=6,
    )
    return settings.replaced(name, None, note=f"Passes do not stand side by side: {reason}.")


def passes_interleave(trace: Trace) -> bool:
    """Whether some op of a later pass ran before one of an earlier pass."""
    last: dict[int, int] = {}
    first: dict[int, int] = {}
    for layer in trace.layers:
        if layer.num_passes > 1:
            for op in layer.ops:
                number = op.pass_index
                last[number] = max(last.get(number, op.step), op.step)
                first[number] = min(first.get(number, op.step), op.step)
    numbers = sorted(first)
    return any(last[a] > first[b] for a, b in pairwise(numbers))


def census(trace: Trace, settings: Settings) -> str | None:
    """The full record of edits that is written beside a figure, or ``None``."""
    return census_text(trace) if settings["view"] == "interventions" else None
