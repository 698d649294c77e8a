"""Checks on data from a file: whatever is not exactly as expected means that the file is damaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
BIGGEST = (1 << 63) - 1


class DamagedError(Exception):
    """Content that no writer of ours makes."""


def whole(value: Any, low: int = 0, high: int = BIGGEST) -> int:
    """A whole number within limits, both included."""
    if type(value) is not int or not low <= value <= high:
        raise DamagedError(f"a number between {low} and {high} was expected")
    return value


def place(value: Any, table: Sequence[Any]) -> int:
    """A position in a table."""
    return whole(value, 0, len(table) - 1)


def real(value: Any) -> float:
    """A number."""
    if type(value) is not float and type(value) is not int:
        raise DamagedError("a number was expected")
    return float(value)


def text(value: Any) -> str:
    """A string that can be written anywhere."""
    if type(value) is not str:
        raise DamagedError("a text was expected")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise DamagedError("a text was expected") from None
    return value


def flag(value: Any) -> bool:
    """``True`` or ``False``."""
    if type(value) is not bool:
        raise DamagedError("true or false was expected")
    return value


def rows(value: Any) -> list[Any]:
    """A list."""
    if type(value) is not list:
        raise DamagedError("a list was expected")
    return value


def row(value: Any, length: int) -> list[Any]:
    """A list of at least ``length`` items; what a newer writer added is left out."""
    if len(rows(value)) < length:
        raise DamagedError(f"a list of {length} items was expected")
    return list(value[:length])


def table(value: Any) -> dict[str, Any]:
    """A mapping."""
    if type(value) is not dict:
        raise DamagedError("a mapping was expected")
    return value


def several(value: Any, check: Callable[[Any], T]) -> list[T]:
    """A list of items that each pass a check."""
    return [check(item) for item in rows(value)]


def optional(value: Any, check: Callable[[Any], T]) -> T | None:
    """``None``, or what passes a check."""
    return None if value is None else check(value)


def chosen(value: Any, choices: Sequence[T]) -> T:
    """One of some choices, by its position."""
    return choices[place(value, choices)]


def columns(value: Any, names: Sequence[str]) -> list[list[Any]]:
    """The named columns of a table, all of one length."""
    held = table(value)
    if any(name not in held for name in names):
        raise DamagedError(f"columns {', '.join(names)} were expected")
    found = [rows(held[name]) for name in names]
    if len({len(column) for column in found}) > 1:
        raise DamagedError("columns of one length were expected")
    return found
