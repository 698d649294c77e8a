"""Stand-ins for what a file can only tell about: other people's objects, functions and exceptions."""

from __future__ import annotations

import keyword
from functools import lru_cache
from typing import Any, NoReturn

from torchlens.errors import InterventionError

RERUN = "Run the model again with fork.rerun(model, x), or fork the trace that was saved."


class Opaque:
    """An object of which the file has the name of its type, its text, and maybe its attributes."""

    __slots__ = ("__dict__", "_text")
    _text: str

    def __repr__(self) -> str:
        return self._text


class OpaqueFunction(Opaque):
    """A function of which the file has the name only."""

    __name__: str

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise InterventionError(
            f"The file has only the name of {self._text}, not the function.",
            code="edit_function_unknown",
            remedy=RERUN,
        )


class Absent:
    """A recorded function that this torch does not have or that is not torch's own; it cannot be called."""

    def __init__(self, module: str | None, name: str) -> None:
        self.__module__ = module  # type: ignore[assignment]
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<{self.__name__}, not in this torch>"


def holds_opaque(value: Any) -> bool:
    """Whether arguments hold something of which a file has only the text."""
    if isinstance(value, (tuple, list)):
        return any(map(holds_opaque, value))
    if isinstance(value, dict):
        return any(map(holds_opaque, value.values()))
    return isinstance(value, Opaque)


class RecordedError(Exception):
    """An exception that stopped a forward in another process, under its own name."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


def opaque(kind: str, text: str, fields: dict[str, Any] | None = None) -> Opaque:
    """A stand-in whose type has the name that the object's type had."""
    made: Opaque = _named(kind, Opaque)()
    made._text = text
    made.__dict__.update(fields or {})
    return made


def opaque_function(name: str, text: str) -> OpaqueFunction:
    """A stand-in for a function."""
    made = OpaqueFunction()
    made.__name__, made.__module__, made._text = name, "", text
    return made


def recorded_error(kind: str, message: str) -> RecordedError:
    """An exception that prints like the one that was raised."""
    made: RecordedError = _named(kind, RecordedError)(message)
    return made


@lru_cache(maxsize=256)
def _named(name: str, base: type) -> Any:
    usable = name.isidentifier() and len(name) <= 100 and not keyword.iskeyword(name)
    return type(name if usable else base.__name__, (base,), {})
