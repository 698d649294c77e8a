"""The model's own source with op labels in the margin."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

from torchlens.capture.callsite import frames, is_users, line_of
from torchlens.errors import InvalidArgumentError, short
from torchlens.trace.op import Layer, Op
from torchlens.trace.parts import Call, Module

if TYPE_CHECKING:
    from torchlens.capture.recording import Site
    from torchlens.trace.trace import Trace

MARGIN = 36
"""Widest margin; labels that do not fit are counted."""


def annotated_source(trace: Trace, part: Op | Layer | Module | Call | str | int) -> str:
    """Source of the function that made an op, or of a module's forward, with labels beside the lines.

    Parameters
    ----------
    trace : Trace
    part : Op, Layer, Module, Call, or a name or position that looks one up

    Raises
    ------
    InvalidArgumentError
        For a part that no code made, or whose source cannot be read.
    """
    found = trace[part] if isinstance(part, (str, int)) else part
    calls = found.calls if isinstance(found, Module) else [found] if isinstance(found, Call) else None
    if calls is not None:
        marks = _marks_of_calls(trace, calls)
    elif isinstance(found, (Op, Layer)):
        marks = _marks_of_op(trace, found.ops[0] if isinstance(found, Layer) else found)
    else:
        raise _refusal(found, "is no op and no module")
    if not marks:
        raise _refusal(found, "was not made by code that was recorded")
    code = next(iter(marks))
    return _listing(code, marks[code], found)


Marks = dict[CodeType, list[tuple[int, str]]]
"""Per function, the offsets of calls and their labels."""


def _outermost(site: Site) -> tuple[CodeType, int] | None:
    pairs = [pair for pair in frames(site) if isinstance(pair[0], CodeType)]
    return pairs[-1] if pairs else None


def _marks_of_calls(trace: Trace, calls: list[Call]) -> Marks:
    """Where a module's forward makes its own ops and calls its children."""
    marks: Marks = {}
    for call in calls:
        made = [(op.record.site, op.label) for op in call.ops if op.record is not None and op.call is call]
        made += [(child.site, child.label) for child in call.children]
        for site, label in made:
            place = _outermost(site)
            if place is not None:
                marks.setdefault(place[0], []).append((place[1], label))
    return marks


def _marks_of_op(trace: Trace, op: Op) -> Marks:
    """Where the function that made an op makes this and other ops."""
    place = _innermost_users(op.full_site)
    if place is None:
        return {}
    code = place[0]
    found = []
    for other in trace.ops:
        pair = _innermost_users(other.full_site)
        if pair is not None and pair[0] is code:
            found.append((pair[1], other.label))
    return {code: found}


def _innermost_users(site: Site) -> tuple[CodeType, int] | None:
    pairs = [pair for pair in frames(site) if isinstance(pair[0], CodeType)]
    return next((pair for pair in pairs if is_users(pair[0])), pairs[0] if pairs else None)


def _listing(code: CodeType, marks: list[tuple[int, str]], part: object) -> str:
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError) as error:
        raise _refusal(part, "has no source that can be read") from error
    by_line: dict[int, list[str]] = {}
    for offset, label in marks:
        labels = by_line.setdefault(line_of(code, offset), [])
        if label not in labels:
            labels.append(label)
    margins = {line: _margin(labels) for line, labels in by_line.items()}
    width = max(map(len, margins.values()))
    shown = [
        f"{margins.get(number, ''):>{width}} {number:5d}  {text.rstrip()}"
        for number, text in enumerate(lines, first)
    ]
    return "\n".join([f"{Path(code.co_filename).name}: {code.co_name}", *shown])


def _margin(labels: list[str]) -> str:
    text = ""
    for position, label in enumerate(labels):
        longer = f"{text}, {label}" if text else label
        if position and len(longer) > MARGIN:
            return f"{text} +{len(labels) - position}"
        text = longer
    return text


def _refusal(part: object, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{short(part)} {problem}.",
        code="trace_source_unavailable",
        argument="op_or_module",
        value=part,
        remedy="Name an op of kind 'call' or a module that ran, in a trace made in this process.",
    )
