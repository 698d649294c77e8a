"""The table of file formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torchlens.drawing.layout.placed import Placed


class Writer(Protocol):
    """Writes one format."""

    def __call__(self, placed: Placed, *, dpi: int) -> bytes:
        """Return the bytes of the file."""
        ...


FORMATS: dict[str, Writer] = {}
"""Writers by the name of their format."""


def writes(file_format: str) -> Callable[[Writer], Writer]:
    """Register the decorated function as the writer of ``file_format``."""

    def register(writer: Writer) -> Writer:
        FORMATS[file_format] = writer
        return writer

    return register


def render(placed: Placed, file_format: str, *, dpi: int = 150) -> bytes:
    """Write a placed picture in one format.

    Parameters
    ----------
    placed : Placed
        A picture from :func:`torchlens.drawing.layout.lay_out`.
    file_format : str
        A key of :data:`FORMATS`.
    dpi : int
        Pixels per inch of ``png``; other formats have no pixels.

    Returns
    -------
    bytes
        The same bytes on every call.

    Raises
    ------
    KeyError
        If no writer has that name.
    """
    return FORMATS[file_format](placed, dpi=dpi)
