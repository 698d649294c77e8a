"""Call sites: the chain of Python frames from a call up to the forward it belongs to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType
from typing import NamedTuple

import torch

from torchlens.capture.recording import Site

LIMIT = 128
"""Frames walked at most; deeper recursion repeats code objects that are already in the chain."""

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_OVERRIDES = os.path.abspath(torch.overrides.__file__)
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
FOLDERS = (_TORCH, _OWN)
"""Where torch and this package lie; code anywhere else is the user's."""


class Location(NamedTuple):
    """A line of source: file, line number and the function's name."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def chain(frame: FrameType | None, boundary: FrameType | None) -> tuple[Site, bool]:
    """Call sites from ``frame`` outward up to ``boundary``, and whether the boundary was met."""
    site: list[CodeType | int] = []
    for _ in range(LIMIT):
        if frame is boundary or frame is None:
            break
        site += (frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return tuple(site), frame is not None or boundary is None


def frames(site: Site) -> Iterator[tuple[CodeType, int]]:
    """The pairs of a chain, innermost first."""
    return zip(site[::2], site[1::2])


@lru_cache(maxsize=65536)
def line_of(code: CodeType, offset: int) -> int:
    """Line of an instruction."""
    if sys.version_info >= (3, 11):
        for position, (line, _, _, _) in enumerate(code.co_positions()):
            if position * 2 >= offset:
                return line or code.co_firstlineno
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            line = number
    return line


def is_users(code: CodeType) -> bool:
    """Whether code lies outside of torch and of this package."""
    return not code.co_filename.startswith(FOLDERS)


def location(site: Site) -> Location | None:
    """The innermost place of a chain in the user's own code, or in torch if there is none."""
    first = None
    for code, offset in frames(site):
        if is_users(code):
            return Location(code.co_filename, line_of(code, offset), code.co_name)
        if first is None and code.co_filename != _OVERRIDES:
            first = (code, offset)
    if first is None:
        return None
    return Location(first[0].co_filename, line_of(*first), first[0].co_name)
