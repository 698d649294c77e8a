"""Text as the drawing sees it: cleaned of what no picture can show, and measured.

Widths come from the tables of the fonts that travel with the package, so that a picture is laid out
the same way on every machine, whatever fonts that machine has.
"""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache
from pathlib import Path

FONTS = Path(__file__).parent / "fonts"
REGULAR, BOLD, FALLBACK = "Inter-Regular", "Inter-SemiBold", "DejaVuSans"
FAMILY = "Inter, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
ASCENT = 0.73
"""Height of capitals and digits as a share of the font size."""
LINE = 1.32
"""Distance of two lines as a share of the font size."""
REPLACEMENT = "\ufffd"

_WIDE, _NARROW = 1.0, 0.6


@lru_cache(maxsize=1)
def _tables() -> dict[str, dict[int, float]]:
    raw = json.loads((FONTS / "widths.json").read_text(encoding="ascii"))
    return {name: {int(code): wide / 1000 for code, wide in table.items()} for name, table in raw.items()}


@lru_cache(maxsize=65536)
def clean(text: str) -> str:
    """Return ``text`` on one line, without characters that have no picture.

    Line breaks and tabs become spaces, other control characters vanish, and halves of surrogate pairs
    become the replacement character.
    """
    if text.isprintable():
        return text
    return "".join(_clean_letter(letter) for letter in text)


def _clean_letter(letter: str) -> str:
    kind = unicodedata.category(letter)
    if letter in "\n\r\t\v\f" or kind in ("Zl", "Zp"):
        return " "
    if kind == "Cs" or letter in "\ufffe\uffff":
        return REPLACEMENT
    return "" if kind in ("Cc", "Cf") else letter


def font_of(letter: str, *, bold: bool = False) -> str | None:
    """Name the shipped font that draws ``letter``, or None if none does."""
    tables, code = _tables(), ord(letter)
    for name in (BOLD if bold else REGULAR, FALLBACK):
        if code in tables[name]:
            return name
    return None


def runs(text: str, *, bold: bool = False) -> list[tuple[str, str]]:
    """Split ``text`` into ``(font, part)``; a letter that no font has becomes the replacement glyph."""
    parts: list[tuple[str, str]] = []
    for letter in text:
        font = font_of(letter, bold=bold)
        shown = letter if font else REPLACEMENT
        font = font or font_of(REPLACEMENT, bold=bold) or FALLBACK
        if parts and parts[-1][0] == font:
            parts[-1] = (font, parts[-1][1] + shown)
        else:
            parts.append((font, shown))
    return parts


@lru_cache(maxsize=65536)
def _em_width(text: str, bold: bool) -> float:
    tables = _tables()
    first, second = tables[BOLD if bold else REGULAR], tables[FALLBACK]
    total = 0.0
    for letter in text:
        code = ord(letter)
        wide = first.get(code) or second.get(code)
        total += wide if wide is not None else _foreign_width(letter)
    return total


def _foreign_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    return _WIDE if unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF else _NARROW * 1.7


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of ``text`` in points at font size ``size``."""
    return _em_width(text, bold) * size


def shorten(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """Cut ``text`` in its middle so that it fits into ``room`` points."""
    if text_width(text, size, bold=bold) <= room:
        return text
    keep = len(text)
    while keep > 2:
        keep -= 1
        cut = text[: (keep + 1) // 2] + "…" + text[len(text) - keep // 2 :]
        if text_width(cut, size, bold=bold) <= room:
            return cut
    return "…"
