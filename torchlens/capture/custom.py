"""Custom autograd functions whose inside leaves torch, so that only their call ties output to inputs."""

from __future__ import annotations

from types import FrameType
from typing import Any, NamedTuple

from torchlens._torch_compat import FUNCTION_APPLY
from torchlens.capture.callsite import LIMIT


class CustomCall(NamedTuple):
    """A call of ``Function.apply`` that handed memory to foreign code: class, arguments, module call."""

    name: str
    args: tuple[Any, ...]
    call: int


def function_around(frame: FrameType | None) -> tuple[str, tuple[Any, ...]] | None:
    """Class name and arguments of the custom function that is running around ``frame``, if one is."""
    for _ in range(LIMIT):
        if frame is None:
            return None
        if frame.f_code is FUNCTION_APPLY:
            held = frame.f_locals
            return held["cls"].__name__, tuple(held["args"])
        frame = frame.f_back
    return None
