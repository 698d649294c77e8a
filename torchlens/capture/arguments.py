"""What the user passes to the model: as call arguments, and every tensor in them by name."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import torch
from torch import nn

from torchlens.capture.recording import TensorRecord

_ATOMS = (str, bytes, int, float, complex, bool, type(None), torch.dtype, torch.device, type(...))


def as_call(
    function: Callable[..., Any], inputs: Any, keywords: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """``(args, kwargs)`` of the call that ``inputs`` and ``keywords`` mean.

    A tuple or list is the positional arguments, a mapping alone the keyword arguments, anything else
    the one argument; unless only the other reading fits the signature.
    """
    named = dict(keywords) if keywords is not None else {}
    if isinstance(inputs, Mapping) and keywords is None:
        if _fits(function, (), dict(inputs)) or not _fits(function, (inputs,), {}):
            return (), dict(inputs)
        return (inputs,), {}
    if type(inputs) in (tuple, list):
        if not _fits(function, tuple(inputs), named) and _fits(function, (inputs,), named):
            return (inputs,), named
        return tuple(inputs), named
    return (inputs,), named


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """Signature of a callable, of its ``forward`` for a module."""
    target = getattr(function, "forward", function) if isinstance(function, nn.Module) else function
    try:
        return inspect.signature(target)
    except (TypeError, ValueError):
        return None


def _fits(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    signature = signature_of(function)
    if signature is None:
        return True
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def named_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, Any]]:
    """Each argument under the name that the signature gives it (``x``, ``args[1]``, ``mask``)."""
    signature = signature_of(function)
    try:
        bound = signature.bind(*args, **kwargs) if signature is not None else None
    except TypeError:
        bound = None
    if bound is None or signature is None:
        return [(f"args[{i}]", value) for i, value in enumerate(args)] + list(kwargs.items())
    found: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            found += [(f"{name}[{i}]", item) for i, item in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            found += list(value.items())
        else:
            found.append((name, value))
    return found


def tensors_in(value: Any, address: str, *, enter_objects: bool = True) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor inside any structure, each object once, with its address.

    Sequences, mappings, sets, dataclasses and plain objects are entered; modules, classes and
    functions are not.  Iterative, so that cycles and depth do no harm.
    """
    stack: list[tuple[str, Any]] = [(address, value)]
    seen: set[int] = set()
    while stack:
        where, item = stack.pop()
        if isinstance(item, torch.Tensor):
            yield where, item
            continue
        if isinstance(item, _ATOMS) or id(item) in seen:
            continue
        seen.add(id(item))
        stack.extend(reversed(list(_children(where, item, enter_objects=enter_objects))))


def _children(where: str, item: Any, *, enter_objects: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(item, Mapping):
        yield from ((f"{where}[{key!r}]", item[key]) for key in list(item))
    elif isinstance(item, tuple) and hasattr(item, "_fields"):
        yield from ((f"{where}.{name}", getattr(item, name)) for name in item._fields)
    elif isinstance(item, (tuple, list, set, frozenset)) or type(item).__name__ == "deque":
        yield from ((f"{where}[{i}]", child) for i, child in enumerate(item))
    elif dataclasses.is_dataclass(item) and not isinstance(item, type):
        yield from ((f"{where}.{f.name}", getattr(item, f.name, None)) for f in dataclasses.fields(item))
    elif enter_objects and not isinstance(item, (nn.Module, type)) and not callable(item):
        fields = getattr(item, "__dict__", None)
        if isinstance(fields, dict):
            yield from ((f"{where}.{name}", child) for name, child in list(fields.items()))


SCALARS = frozenset(
    {
        int,
        float,
        str,
        bool,
        type(None),
        complex,
        torch.dtype,
        torch.device,
        torch.layout,
        torch.Size,
        type(...),
    }
    | {torch.memory_format}
)

Find = Callable[[torch.Tensor], TensorRecord | None]


def template(value: Any, find: Find, around: tuple[Any, ...] = ()) -> Any:
    """``value`` with every tensor replaced by its record; containers are copied.

    ``around`` holds the containers that ``value`` lies in: one that comes back inside itself is cut.
    """
    kind = type(value)
    if kind in SCALARS:
        return value
    if isinstance(value, torch.Tensor):
        return find(value)
    if isinstance(value, (tuple, list, dict)) and any(value is container for container in around):
        return ...
    if isinstance(value, tuple):
        items = [template(item, find, (*around, value)) for item in value]
        return tuple.__new__(kind, items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [template(item, find, (*around, value)) for item in value]
    if isinstance(value, dict):
        return {key: template(item, find, (*around, value)) for key, item in value.items()}
    if kind is slice:
        return slice(template(value.start, find), template(value.stop, find), template(value.step, find))
    return value


def filled(value: Any, give: Callable[[TensorRecord], Any]) -> Any:
    """The inverse of :func:`template`: every record replaced by what ``give`` returns for it."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if isinstance(value, TensorRecord):
        return give(value)
    if isinstance(value, list):
        return [filled(item, give) for item in value]
    if isinstance(value, tuple):
        items = [filled(item, give) for item in value]
        return tuple.__new__(kind, items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        return {key: filled(item, give) for key, item in value.items()}
    if kind is slice:
        return slice(filled(value.start, give), filled(value.stop, give), filled(value.step, give))
    return value


def flat_tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of what a function returned, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    found: list[torch.Tensor] = []
    if isinstance(value, (tuple, list)):
        for item in value:
            found += flat_tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            found += flat_tensors(item)
    return found


def apart(value: Any, wanted: Callable[[torch.Tensor], bool]) -> Any:
    """``value`` with copies in place of the tensors that ``wanted`` names, in copied containers.

    What holds no such tensor stays the very object.
    """
    if isinstance(value, torch.Tensor):
        return value.detach().clone() if wanted(value) else value
    if not any(wanted(tensor) for _, tensor in tensors_in(value, "")):
        return value
    if isinstance(value, tuple):
        items = [apart(item, wanted) for item in value]
        return tuple.__new__(type(value), items)
    if isinstance(value, list):
        return [apart(item, wanted) for item in value]
    copied = copy.copy(value)
    if isinstance(copied, MutableMapping):
        for key in list(copied):
            copied[key] = apart(copied[key], wanted)
    else:
        for name, item in list(getattr(copied, "__dict__", {}).items()):
            object.__setattr__(copied, name, apart(item, wanted))
    return copied
