"""``tl.trace``: run a model and get its trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torchlens.capture.arguments import as_call
from torchlens.capture.recorder import Keep
from torchlens.capture.recording import Recording
from torchlens.capture.run import Options, _class_name, record
from torchlens.errors import InvalidArgumentError, check_choice, check_keywords, check_type, short
from torchlens.trace.trace import Trace

KEYWORDS = [
    "save",
    "intervene",
    "warmup",
    "repeats",
    "fake",
    "check_finite",
    "audit",
    "saved_for_backward",
    "restore_state",
    "progress",
    "name",
]


def trace(
    model: Callable[..., Any],
    inputs: Any = (),
    keywords: Any = None,
    *,
    save: Any = True,
    warmup: int = 0,
    repeats: int = 1,
    check_finite: str = "lazy",
    audit: bool = False,
    saved_for_backward: bool | None = None,
    restore_state: bool = True,
    name: str | None = None,
    **unknown: Any,
) -> Trace:
    """Run a model once and record every op.

    Parameters
    ----------
    model : callable
        A module, a function, or a bound method such as ``model.generate``.
    inputs : object
        One argument; a tuple or list of positional arguments; or a mapping alone, which is the keyword
        arguments.  Write ``([a, b],)`` for one argument that is itself a list.
    keywords : mapping, optional
        Keyword arguments.
    save : bool or callable
        Keep every op's output (default), none, or those for which ``save(func_name, op_number)`` holds.
    warmup, repeats : int
        Forwards before timing, and timed forwards; ``func_duration`` is their median.  With more than
        one forward the first one keeps the values and the durations come from later ones.
    check_finite : {"lazy", "capture"}
        Derive nonfinite states from kept values when asked, or one per op while running.
    audit : bool
        Count every ATen dispatch that no recorded op accounts for.
    saved_for_backward : bool, optional
        Read what autograd saved per op; by default for models in training mode with gradients on.
    restore_state : bool
        Put buffers and random number generators back afterwards.
    name : str, optional
        Title; the class name by default.

    Returns
    -------
    Trace

    Raises
    ------
    InvalidArgumentError
        For a wrong option, before anything runs.
    Exception
        Whatever the model raises, with a note where it happened and the partial trace at ``.trace``.
    """
    check_keywords(unknown, KEYWORDS, where="tl.trace", code="trace_keyword_unknown")
    _check(model, save, warmup, repeats, check_finite, audit, restore_state, saved_for_backward, name)
    args, kwargs = as_call(model, inputs, keywords)
    title = name or _class_name(model)
    options = Options(
        keep=_keep(save),
        audit=audit,
        saved=_reads_saved(model) if saved_for_backward is None else saved_for_backward,
        restore_state=restore_state,
        inspect=_status() if check_finite == "capture" else None,
        clock=time.perf_counter_ns,
    )
    recording, error = record(model, args, kwargs, name=title, options=options)
    if error is not None:
        _explain(error, recording)
        raise error
    return Trace(recording)


def _check(
    model: Any,
    save: Any,
    warmup: Any,
    repeats: Any,
    check_finite: Any,
    audit: Any,
    restore: Any,
    saved: Any,
    name: Any,
) -> None:
    """Refuse wrong options before anything runs."""
    if not callable(model):
        raise InvalidArgumentError(
            f"model={short(model)} cannot be called.",
            code="trace_model_invalid",
            argument="model",
            value=model,
            remedy="Pass an nn.Module, a function, or a bound method.",
        )
    if isinstance(model, type):
        raise InvalidArgumentError(
            f"model={short(model)} is a class.",
            code="trace_model_invalid",
            argument="model",
            value=model,
            remedy=f"Pass an instance: {model.__name__}(...).",
        )
    for argument, value in (("audit", audit), ("restore_state", restore)):
        check_type(value, bool, argument=argument, code=f"trace_{argument}_invalid", wanted="True or False")
    for argument, value, least in (("warmup", warmup, 0), ("repeats", repeats, 1)):
        check_type(value, int, argument=argument, code=f"trace_{argument}_invalid", wanted="a whole number")
        if value < least:
            raise InvalidArgumentError(
                f"{argument}={value} is too small.",
                code=f"trace_{argument}_invalid",
                argument=argument,
                value=value,
                remedy=f"Pass {least} or more.",
            )
    check_choice(
        check_finite, ("lazy", "capture"), argument="check_finite", code="trace_check_finite_invalid"
    )
    if not isinstance(save, bool) and not callable(save):
        raise InvalidArgumentError(
            f"save={short(save)} is not understood.",
            code="trace_save_invalid",
            argument="save",
            value=save,
            remedy="Pass True, False, a site selector, or a function f(op) -> bool.",
        )
    if saved is not None:
        check_type(
            saved, bool, argument="saved_for_backward", code="trace_saved_invalid", wanted="True or False"
        )
    if name is not None:
        check_type(name, str, argument="name", code="trace_name_invalid", wanted="a string")


def _keep(save: Any) -> Keep:
    return save if isinstance(save, bool) else lambda name, step: bool(save(name, step))


def _reads_saved(model: Any) -> bool:
    import torch

    owner = getattr(model, "__self__", model)
    return (
        torch.is_grad_enabled()
        and isinstance(owner, torch.nn.Module)
        and bool(getattr(owner, "training", False))
    )


def _status() -> Callable[[Any], str]:
    from torchlens.analysis.finite import status_of

    return status_of


def _explain(error: BaseException, recording: Recording) -> None:
    """Add to the user's exception where it happened, and the partial trace."""
    partial = Trace(recording)
    failure = recording.failure
    assert failure is not None
    parts = []
    if failure.op is not None:
        op = partial.recorded_ops(failure.op, failure.op + 1)[0]
        shapes = [str(edge.parent.shapes[edge.out_index]) for edge in op.inputs if edge.parent.records]
        parts.append(f"op {op.step} ({op.func_name})")
        if shapes:
            parts.append(f"inputs {', '.join(shapes)}")
        if op.code is not None:
            parts.append(str(op.code))
    if failure.calls:
        call = partial.calls[failure.calls[-1]]
        parts.insert(1, f"in {call.label} ({call.module.class_name})")
    note = f"torchlens: stopped at {', '.join(parts) or 'the model itself'}; partial trace at .trace"
    if hasattr(error, "add_note"):
        error.add_note(note)
    try:
        error.trace = partial  # type: ignore[attr-defined]
    except AttributeError:  # an exception class with __slots__
        return
