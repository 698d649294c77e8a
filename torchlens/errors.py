"""Typed errors and warnings, and the checks that raise them.

Every refusal states the problem, the value given, the choices, and what to do instead; ``code`` is a
stable string for programs.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Sequence
from typing import Any


class TorchLensError(Exception):
    """Base class of every error that torchlens raises by itself."""


class InvalidArgumentError(TorchLensError, ValueError):
    """An argument that cannot be honoured; nothing ran and nothing was written.

    Attributes
    ----------
    code : str
        Stable identifier of the problem, such as ``"draw_view_invalid"``.
    argument : str
        Name of the argument.
    value : object
        The value given.
    remedy : str
        What to do instead.
    """

    def __init__(self, problem: str, *, code: str, argument: str, value: object = None, remedy: str) -> None:
        super().__init__(f"{problem} {remedy}")
        self.code = code
        self.argument = argument
        self.value = value
        self.remedy = remedy


class NotFoundError(TorchLensError, LookupError):
    """A name that is not in the trace.

    Attributes
    ----------
    key : object
        What was looked up.
    nearest : tuple of str
        The closest names that exist.
    """

    def __init__(self, problem: str, *, key: object, nearest: Sequence[str] = ()) -> None:
        hint = f" Closest: {', '.join(nearest)}." if nearest else ""
        super().__init__(problem + hint)
        self.key = key
        self.nearest = tuple(nearest)


class AmbiguousReadError(TorchLensError, AttributeError):
    """A value that each pass of a layer has for itself was read from the layer as a whole."""


class CaptureError(TorchLensError, RuntimeError):
    """A model cannot be recorded in the way asked for.

    Attributes
    ----------
    code : str
        Stable identifier of the problem.
    remedy : str
        What to do instead.
    """

    def __init__(self, problem: str, *, code: str, remedy: str) -> None:
        super().__init__(f"{problem} {remedy}")
        self.code = code
        self.remedy = remedy


class SaveError(TorchLensError, RuntimeError):
    """A trace could not be written; what was at that path before is untouched.

    Attributes
    ----------
    code : str
        Stable identifier of the problem.
    remedy : str
        What to do instead.
    """

    def __init__(self, problem: str, *, code: str, remedy: str) -> None:
        super().__init__(f"{problem} {remedy}")
        self.code = code
        self.remedy = remedy


class LoadError(TorchLensError, RuntimeError):
    """A file that cannot be read as a trace: not there, not ours, newer, or damaged.

    Attributes
    ----------
    code : str
        Stable identifier of the problem, such as ``"load_damaged"``.
    remedy : str
        What to do instead.
    """

    def __init__(self, problem: str, *, code: str, remedy: str) -> None:
        super().__init__(f"{problem} {remedy}")
        self.code = code
        self.remedy = remedy


class InterventionError(TorchLensError, RuntimeError):
    """An edit that cannot be made; the trace is as it was.

    Attributes
    ----------
    code : str
        Stable identifier of the problem.
    op : str
        Label of the op that it is about, empty if about none.
    remedy : str
        What to do instead.
    """

    def __init__(self, problem: str, *, code: str, remedy: str, op: str = "") -> None:
        super().__init__(f"{problem} {remedy}")
        self.code = code
        self.op = op
        self.remedy = remedy


class TorchLensWarning(UserWarning):
    """Something was done differently from what was asked, or could not be checked.

    Attributes
    ----------
    code : str
        Stable identifier, such as ``"view_nonfinite_not_checked"``.
    remedy : str
        What to do about it.
    """

    def __init__(self, problem: str, *, code: str, remedy: str = "") -> None:
        super().__init__(f"{problem} {remedy}".strip())
        self.code = code
        self.remedy = remedy


def warn(problem: str, *, code: str, remedy: str = "", stacklevel: int = 3) -> None:
    """Issue a :class:`TorchLensWarning`."""
    warnings.warn(TorchLensWarning(problem, code=code, remedy=remedy), stacklevel=stacklevel)


def short(value: object, *, limit: int = 80) -> str:
    """``repr`` of a value, cut to ``limit`` characters; never raises."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nearest(name: object, choices: Iterable[str], *, count: int = 3) -> list[str]:
    """The closest of ``choices`` to ``name``, best first."""
    return difflib.get_close_matches(str(name), list(choices), n=count, cutoff=0.5)


def check_choice(value: object, choices: Sequence[str], *, argument: str, code: str) -> None:
    """Refuse a value that is not one of ``choices``, naming them and the nearest."""
    if isinstance(value, str) and value in choices:
        return
    near = nearest(value, choices, count=1) if isinstance(value, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InvalidArgumentError(
        f"{argument}={short(value)} is not known.{hint}",
        code=code,
        argument=argument,
        value=value,
        remedy=f"Choose one of: {', '.join(map(repr, choices))}.",
    )


def check_type(
    value: object, types: type | tuple[type, ...], *, argument: str, code: str, wanted: str
) -> None:
    """Refuse a value of another type; ``bool`` does not pass as ``int``."""
    allowed = types if isinstance(types, tuple) else (types,)
    if isinstance(value, allowed) and not (isinstance(value, bool) and bool not in allowed):
        return
    raise InvalidArgumentError(
        f"{argument}={short(value)} is a {type(value).__name__}.",
        code=code,
        argument=argument,
        value=value,
        remedy=f"Pass {wanted}.",
    )


def check_keywords(given: Iterable[str], known: Sequence[str], *, where: str, code: str) -> None:
    """Refuse keywords that do not exist, naming the nearest one."""
    values: dict[str, Any] = dict.fromkeys(given)
    for name in values:
        if name not in known:
            near = nearest(name, known, count=1)
            remedy = f"Did you mean {near[0]!r}?" if near else f"Known keywords: {', '.join(known)}."
            raise InvalidArgumentError(
                f"{where} has no keyword {name!r}.", code=code, argument=name, value=name, remedy=remedy
            )
