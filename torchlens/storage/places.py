"""Call sites in a file: for each code object its file, its name, and the lines where it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from torchlens.capture.callsite import FOLDERS, line_of
from torchlens.capture.recording import Site
from torchlens.storage.checks import BIGGEST, DamagedError, chosen, place, row, rows, several, text, whole


class SavedCode:
    """A code object that is known by its file, its name and the lines of some instructions.

    ``lines`` are those of instructions 0, 2, 4, ...; it answers where lines are asked of code.
    """

    __slots__ = ("_lines", "co_filename", "co_firstlineno", "co_name")

    def __init__(self, file: str, name: str, first: int, lines: list[int]) -> None:
        self.co_filename = file
        self.co_name = name
        self.co_firstlineno = first
        self._lines = lines

    def co_positions(self) -> Iterator[tuple[int | None, int | None, int | None, int | None]]:
        """Line by instruction."""
        return iter([(line, line, None, None) for line in self._lines])

    def co_lines(self) -> Iterator[tuple[int, int, int | None]]:
        """Line by range of instructions."""
        return iter([(2 * i, 2 * i + 2, line) for i, line in enumerate(self._lines)])


class PlaceWriter:
    """Numbers sites and code objects as they are met."""

    def __init__(self) -> None:
        self._sites: dict[tuple[int, ...], int] = {}
        self._codes: dict[int, int] = {}
        self._places: list[dict[int, int]] = []
        self._held: list[Any] = []
        self._rows: list[list[int]] = []

    def number(self, site: Site) -> int:
        """Number of a site."""
        key = (*map(id, site[::2]), *site[1::2])
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = len(self._rows)
            self._rows.append([n for pair in zip(site[::2], site[1::2]) for n in self._pair(*pair)])
        return found

    def _pair(self, code: Any, offset: int) -> tuple[int, int]:
        number = self._codes.get(id(code))
        if number is None:
            number = self._codes[id(code)] = len(self._held)
            self._held.append(code)
            self._places.append({})
        places = self._places[number]
        return number, places.setdefault(offset, len(places))

    def data(self) -> dict[str, Any]:
        """Both tables."""
        return {"codes": [self._code(*pair) for pair in zip(self._held, self._places)], "sites": self._rows}

    @staticmethod
    def _code(code: Any, places: dict[int, int]) -> list[Any]:
        file, root = code.co_filename, 0
        for number, folder in enumerate(FOLDERS, 1):
            if file.startswith(folder):
                file, root = file[len(folder) :].replace(os.sep, "/"), number
                break
        lines = [max(0, line_of(code, offset)) for offset in places]
        return [root, file, code.co_name, max(0, code.co_firstlineno), lines]


def read_sites(data: dict[str, Any]) -> list[Site]:
    """The sites of a file."""
    codes = [_read_code(*row(one, 5)) for one in rows(data.get("codes"))]
    return [_read_site(one, codes) for one in rows(data.get("sites"))]


def _read_code(root: Any, file: Any, name: Any, first: Any, lines: Any) -> SavedCode:
    folder = chosen(root, ("", *FOLDERS))
    return SavedCode(folder + text(file), text(name), whole(first), several(lines, whole))


def _read_site(numbers: Any, codes: list[SavedCode]) -> Site:
    found: list[Any] = []
    flat = rows(numbers)
    if len(flat) % 2:
        raise DamagedError("pairs were expected")
    for number, position in zip(flat[::2], flat[1::2]):
        code = codes[place(number, codes)]
        found += (code, 2 * whole(position, 0, min(len(code._lines) - 1, BIGGEST)))
    return tuple(found)
