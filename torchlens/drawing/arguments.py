"""The arguments of a call that are no tensors, named and written as people write them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torchlens.capture.recording import TensorRecord

if TYPE_CHECKING:
    from torchlens.trace.op import Op

_NOTHING = inspect.Parameter.empty
_LONGEST = 40
_BARE = frozenset(
    [
        "add",
        "sub",
        "floordiv",
        "mod",
        "to",
        "type",
        "mul",
        "div",
        "pow",
        "rpow",
        "eq",
        "ne",
        "gt",
        "lt",
        "ge",
        "le",
        "floor_divide",
        "remainder",
        "fmod",
        "true_divide",
        "bitwise_and",
        "bitwise_or",
    ]
)
_REVERSED = {"__rsub__": "-", "__rdiv__": "/", "__rtruediv__": "/", "__rpow__": "**", "__rfloordiv__": "//"}
"""Operators whose tensor stands on the right, and how people write them."""
_CALLED = frozenset(
    [
        "view",
        "reshape",
        "permute",
        "expand",
        "transpose",
        "unflatten",
        "unsqueeze",
        "squeeze",
        "flatten",
        "repeat",
        "chunk",
        "split",
        "unbind",
        "select",
        "narrow",
        "tile",
        "movedim",
        "swapaxes",
        "zeros",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty",
        "randint",
        "linspace",
        "ones",
        "full",
        "empty",
        "arange",
        "rand",
        "randn",
        "tril",
        "triu",
        "roll",
        "pad",
        "repeat_interleave",
        "broadcast_to",
    ]
)
"""Functions whose sizes and axes people write as a call: ``view(2, -1)``."""
_MOVES = frozenset(["to", "cuda", "cpu"])
_SIDES = frozenset(["stride", "padding", "dilation", "output_padding", "kernel_size", "output_size"])
_OBVIOUS = frozenset(["normalized_shape", "inplace", "num_weights", "embed_dim_to_check"])
"""Arguments that the shapes in the node say already, or that change no value."""


_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Argument(NamedTuple):
    """One argument: its name (``""`` if unknown), its text, and whether it equals the default."""

    name: str
    text: str
    default: bool


@lru_cache(maxsize=4096)
def signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """Signature of a torch function, for built-in ones as torch declares it for overriding."""
    for candidate in (function, torch.overrides.get_testing_overrides().get(function)):
        try:
            found = inspect.signature(candidate) if candidate is not None else None
        except (TypeError, ValueError):
            continue
        if found is not None and not all(p.kind in _OPEN for p in found.parameters.values()):
            return found
    return None


def arguments(op: Op) -> list[Argument]:
    """Every argument without tensors, in order."""
    if op.record is None:
        return []
    found = []
    for name, value, default in _bound(op):
        if name.startswith("_") or _holds_tensor(value):
            continue
        same = value is None or (default is not _NOTHING and _equal(value, default))
        found.append(Argument(name, written(value, sides=name in _SIDES), same))
    return found


def _bound(op: Op) -> Iterator[tuple[str, Any, Any]]:
    record = op.record
    assert record is not None
    found = signature(record.func)
    positional: list[inspect.Parameter | None] = []
    defaults: dict[str, Any] = {}
    if found is not None:
        defaults = {p.name: p.default for p in found.parameters.values()}
        positional = [p for p in found.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    for position, value in enumerate(record.args):
        parameter = positional[min(position, len(positional) - 1)] if positional else None
        if (
            parameter is None
            or (position >= len(positional) and parameter.kind is not parameter.VAR_POSITIONAL)
            or parameter.kind is parameter.VAR_POSITIONAL
        ):
            yield "", value, _NOTHING
        else:
            yield parameter.name, value, parameter.default
    for name, value in record.kwargs.items():
        yield name, value, defaults.get(name, _NOTHING)


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, (TensorRecord, torch.Tensor)):
        return True
    return isinstance(value, (tuple, list)) and bool(value) and all(_holds_tensor(item) for item in value)


def _equal(value: Any, default: Any) -> bool:
    try:
        if isinstance(value, (tuple, list)) and isinstance(default, (int, float)) and value:
            return all(item == default for item in value)
        return type(value) is not torch.Tensor and bool(value == default)
    except Exception:
        return False


def written(value: Any, *, sides: bool = False) -> str:
    """A value as people write it; ``sides`` writes equal sides once."""
    if sides and isinstance(value, (tuple, list)) and len(set(map(repr, value))) == 1:
        value = value[0]
    text = _text(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _text(value: Any) -> str:
    if isinstance(value, TensorRecord):
        return "tensor"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str):
        return value
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value).removeprefix("torch.")
    if isinstance(value, slice):
        return _slice(value)
    if value is Ellipsis:
        return "..."
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(_text, value)) + ")"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return str(value) if isinstance(value, (int, complex, torch.device)) else type(value).__name__


def _slice(value: slice) -> str:
    start, stop, step = (
        "" if part is None else _text(part) for part in (value.start, value.stop, value.step)
    )
    return f"{start}:{stop}" + (f":{step}" if step else "")


class Described(NamedTuple):
    """Type of an op with the scalars people know it by, and a line with its other arguments."""

    title: str
    detail: str


def described(op: Op, *, bare: bool = False, redundant: bool = False) -> Described:
    """Write a call without its tensors.

    Parameters
    ----------
    op : Op
    bare : bool
        Keep all arguments out of the title.
    redundant : bool
        Also list the arguments that equal their defaults.
    """
    found = arguments(op)
    obvious = _OBVIOUS if op.type in _MOVES else _OBVIOUS | {"device"}
    telling = [item for item in found if not item.default and item.name not in obvious]
    title = None if bare else _title(op, telling)
    if title is not None:
        telling = []
    rest = [item for item in found if item.default or item.name in obvious] if redundant else []
    return Described(title or op.type, ", ".join(_named(item) for item in (*telling, *rest)))


def _title(op: Op, given: list[Argument]) -> str | None:
    """The title that says every given argument, or ``None`` if that is too long."""
    if op.type in ("getitem", "setitem") and op.record is not None and len(op.record.args) > 1:
        index = op.record.args[1]
        inside = ", ".join(map(_text, index)) if isinstance(index, tuple) else _text(index)
        return f"{op.type}[{inside}]" if len(inside) <= _LONGEST else op.type
    if not given:
        return op.type
    if op.type in _CALLED:
        text = f"{op.type}({', '.join(map(_inside, given))})"
    elif op.func_name in _REVERSED and len(given) == 1:
        text = f"{given[0].text} {_REVERSED[op.func_name]} x"
    elif op.type in _BARE and len(given) == 1:
        text = f"{op.type} {given[0].text}"
    else:
        text = " ".join([op.type, *map(_named, given)])
    return text if len(text) <= _LONGEST else None


def _inside(item: Argument) -> str:
    text = item.text
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _named(item: Argument) -> str:
    """``name=value``, or the value alone where the name is not known."""
    return f"{item.name}={item.text}" if item.name else item.text
