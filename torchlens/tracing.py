"""``tl.trace``: run a model and get its trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torchlens.capture.arguments import as_call
from torchlens.capture.recording import Recording
from torchlens.capture.repeat import record_repeatedly
from torchlens.capture.run import Options, class_name_of, record
from torchlens.errors import (
    CaptureError,
    InvalidArgumentError,
    check_choice,
    check_keywords,
    check_type,
    short,
)
from torchlens.interventions.capture import keep_of, live_edits, only_saved, with_edits
from torchlens.interventions.sites import Site
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
    intervene: Any = None,
    warmup: int = 0,
    repeats: int = 1,
    fake: bool = False,
    check_finite: str = "lazy",
    audit: bool = False,
    saved_for_backward: bool | None = None,
    restore_state: bool = True,
    progress: bool | None = None,
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
    save : bool, Site or callable
        Keep every op's output (default), none, those at a site such as ``tl.func("relu")``, or those for
        which ``f(op)`` holds; ``op`` has ``func_name type modules module params out shape dtype step``.
        Parameters, buffers and inputs are kept by reference unless it is ``False``.
    intervene : list of (Site, action), optional
        Edits made while the model runs, such as ``[(tl.func("relu"), tl.zero())]``.
    warmup, repeats : int
        Forwards before timing, and timed forwards; ``func_duration`` is their median.  With more than
        one forward the first one keeps the values and the durations come from later ones.
    fake : bool
        Run a copy of the model on fake tensors: shapes, FLOPs and bytes are exact, no arithmetic is
        done and no memory taken; durations and values are absent.  Parameters on the meta device count
        as being on the CPU.
    check_finite : {"lazy", "capture"}
        Derive nonfinite states from kept values when asked; or one per op while running, in which case
        no values are kept.
    audit : bool
        Count every ATen dispatch that no recorded op accounts for.
    saved_for_backward : bool, optional
        Read what autograd saved per op; by default for models in training mode with gradients on.
    restore_state : bool
        Put buffers and random number generators back afterwards.
    progress : bool, optional
        Show the number of ops while a long run goes on; by default in a terminal or notebook, after
        two seconds.
    name : str, optional
        Title; the class name by default.

    Returns
    -------
    Trace

    Raises
    ------
    InvalidArgumentError
        For a wrong option, before anything runs.
    InterventionError
        For a ``save`` or ``intervene`` site that the run shows to match nothing; the trace is at ``.trace``.
    Exception
        Whatever the model raises, with a note where it happened and the partial trace at ``.trace``.
    """
    check_keywords(unknown, KEYWORDS, where="tl.trace", code="trace_keyword_unknown")
    _check_model(model)
    _check_flags(audit=audit, restore_state=restore_state, fake=fake)
    _check_flags(saved_for_backward=saved_for_backward, progress=progress, optional=True)
    _check_counts(warmup=warmup, repeats=repeats, fake=fake)
    check_choice(
        check_finite, ("lazy", "capture"), argument="check_finite", code="trace_check_finite_invalid"
    )
    _check_save(save)
    if name is not None:
        check_type(name, str, argument="name", code="trace_name_invalid", wanted="a string")
    args, kwargs = as_call(model, inputs, keywords)
    title = name or class_name_of(model)
    keep = False if fake or (check_finite == "capture" and save is True) else keep_of(model, save)
    edits = live_edits(model, intervene)
    if fake and edits is not None:
        raise InvalidArgumentError(
            "intervene= with fake=True: a fake run has no values to edit.",
            code="intervene_fake",
            argument="intervene",
            value=intervene,
            remedy="Leave one of them out.",
        )
    options = Options(
        keep=keep,
        audit=audit,
        saved=_reads_saved(model) if saved_for_backward is None else saved_for_backward,
        restore_state=restore_state,
        inspect=_status() if check_finite == "capture" else None,
        progress=progress,
        edit=edits,
    )
    if fake:
        recording, error = _record_fake(model, args, kwargs, name=title, options=options)
    else:
        recording, error = record_repeatedly(
            model, args, kwargs, name=title, options=options, warmup=warmup, repeats=repeats
        )
    if error is not None:
        _explain(error, recording)
        raise error
    made = only_saved(Trace(recording), save, keep)
    return made if edits is None else with_edits(made, edits)


def _record_fake(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, name: str, options: Options
) -> tuple[Recording, BaseException | None]:
    """Run on fake tensors; a forward that needs a value is explained."""
    from torchlens.capture.fake import FAILURES, as_fake

    run = as_fake(model, args, kwargs)
    options = replace(options, mode=run.mode, saved=False, inspect=None)
    recording, error = record(run.function, run.args, run.kwargs, name=name, options=options)
    if isinstance(error, FAILURES):
        reason = error
        error = CaptureError(
            f"The forward needs a value that a fake run does not have ({reason}).",
            code="fake_data_dependent",
            remedy="Trace it with fake=False.",
        )
        error.__cause__ = reason
    return recording, error


def _check_model(model: Any) -> None:
    """Refuse what cannot be called."""
    if callable(model) and not isinstance(model, type):
        return
    is_class = isinstance(model, type)
    raise InvalidArgumentError(
        f"model={short(model)} is a class." if is_class else f"model={short(model)} cannot be called.",
        code="trace_model_invalid",
        argument="model",
        value=model,
        remedy=f"Pass an instance: {model.__name__}(...)."
        if is_class
        else "Pass an nn.Module, a function, or a bound method.",
    )


def _check_flags(*, optional: bool = False, **flags: Any) -> None:
    """Refuse flags that are not ``True`` or ``False``."""
    for name, value in flags.items():
        if not (optional and value is None):
            check_type(value, bool, argument=name, code=f"trace_{name}_invalid", wanted="True or False")


def _check_counts(*, warmup: Any, repeats: Any, fake: bool) -> None:
    """Refuse numbers of forwards that are none, or that contradict a fake run."""
    for name, value, least in (("warmup", warmup, 0), ("repeats", repeats, 1)):
        check_type(value, int, argument=name, code=f"trace_{name}_invalid", wanted="a whole number")
        if value < least or (fake and value > least):
            raise InvalidArgumentError(
                f"{name}={value} is too small." if value < least else f"{name}={value} with fake=True.",
                code=f"trace_{name}_invalid",
                argument=name,
                value=value,
                remedy=f"Pass {least} or more."
                if value < least
                else "A fake run is not timed; leave it out.",
            )


def _check_save(save: Any) -> None:
    if not isinstance(save, (bool, Site)) and not callable(save):
        raise InvalidArgumentError(
            f"save={short(save)} is not understood.",
            code="trace_save_invalid",
            argument="save",
            value=save,
            remedy="Pass True, False, a site selector, or a function f(op) -> bool.",
        )


def _reads_saved(model: Any) -> bool:
    import torch

    owner = getattr(model, "__self__", model)
    return (
        torch.is_grad_enabled()
        and isinstance(owner, torch.nn.Module)
        and bool(getattr(owner, "training", False))
    )


def _status() -> Callable[[Any], str | None]:
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
