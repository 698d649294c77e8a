"""Tables that keep the data of the page small: every text and every set of rows stands there once."""

from __future__ import annotations

from collections.abc import Iterable

from torchlens.drawing.scene import Row
from torchlens.drawing.text import clean

KINDS = ("title", "shape", "detail", "note")
"""Kinds of rows by their number."""


class Strings:
    """Every text once, by number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Number of a text, cleaned of what cannot be shown."""
        return self._numbers.setdefault(clean(text), len(self._numbers))

    @property
    def table(self) -> list[str]:
        """The texts in order."""
        return list(self._numbers)


class RowSets:
    """Every set of rows once, by number; a row is two numbers, its kind and its text."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._numbers: dict[tuple[int, ...], int] = {}

    def number(self, rows: Iterable[Row]) -> int:
        """Number of a set of rows."""
        flat: list[int] = []
        for row in rows:
            flat += KINDS.index(row.kind), self._strings.number(row.text)
        return self._numbers.setdefault(tuple(flat), len(self._numbers))

    @property
    def table(self) -> list[tuple[int, ...]]:
        """The sets in order."""
        return list(self._numbers)
