"""Actions: what an edit does to a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from torchlens.errors import InvalidArgumentError, TorchLensError, short

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace

Apply = Callable[[torch.Tensor, Any, int], Any]


@dataclass(frozen=True)
class Action:
    """A change of one tensor: ``apply(value, op, output number)`` gives the new one.

    Attributes
    ----------
    text : str
        As users write it, with its arguments.
    apply : callable
    foreign : bool
        Whether it is the user's own function, which may write to what it is given.
    """

    text: str
    apply: Apply = field(repr=False)
    foreign: bool = False

    def __str__(self) -> str:
        return self.text


def _said(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return short(value, limit=60)


def _action(name: str, apply: Apply, *values: Any, **named: Any) -> Action:
    texts = [_said(value) for value in values]
    texts += [f"{key}={_said(value)}" for key, value in named.items() if value is not None]
    return Action(f"{name}({', '.join(texts)})", apply)


def zero() -> Action:
    """Set every element to 0."""
    return _action("zero", lambda value, op, output: torch.zeros_like(value))


def mean(dim: int | tuple[int, ...] | None = None) -> Action:
    """Put the mean in place of every element, over all of them or along ``dim``."""

    def apply(value: torch.Tensor, op: Any, output: int) -> torch.Tensor:
        middle = value.mean() if dim is None else value.mean(dim, keepdim=True)
        return middle.expand_as(value).clone(memory_format=torch.contiguous_format)

    return _action("mean", apply, dim=dim)


def scale(factor: Any) -> Action:
    """Multiply by a number or tensor."""
    return _action("scale", lambda value, op, output: value * factor, factor)


def add(amount: Any) -> Action:
    """Add a number or tensor, such as a steering vector."""
    return _action("add", lambda value, op, output: value + amount, amount)


def clamp(min: Any = None, max: Any = None) -> Action:
    """Limit every element to ``[min, max]``."""
    if min is None and max is None:
        raise InvalidArgumentError(
            "clamp has neither min nor max.",
            code="action_clamp_invalid",
            argument="min",
            remedy="Pass one of them, such as tl.clamp(min=0).",
        )
    return _action("clamp", lambda value, op, output: value.clamp(min, max), min=min, max=max)


def noise(std: float = 1.0, *, seed: int) -> Action:
    """Add Gaussian noise, the same for the same seed and shape."""

    def apply(value: torch.Tensor, op: Any, output: int) -> torch.Tensor:
        source = torch.Generator().manual_seed(seed)
        drawn = torch.randn(tuple(value.shape), generator=source, dtype=torch.float32)
        return value + (drawn * std).to(value.device, value.dtype)

    return _action("noise", apply, std, seed=seed)


def replace(new: Any, *, index: Any = None) -> Action:
    """Put another value in its place: a tensor of its shape, or a number for every element.

    Parameters
    ----------
    new : tensor or number
    index : optional
        Only ``value[index]``; the rest stays.
    """
    return _action("replace", lambda value, op, output: _put(value, new, index), new, index=index)


def swap(other: Trace, *, index: Any = None) -> Action:
    """Put in the value that the same op has in another trace: activation patching.

    Parameters
    ----------
    other : Trace
        Of the same model, such as on another prompt.
    index : optional
        Only ``value[index]``; the rest stays.
    """

    def apply(value: torch.Tensor, op: Any, output: int) -> torch.Tensor:
        new = _value_in(other, op, output)
        return _put(value, new if index is None else new[index], index)

    name = getattr(other, "name", type(other).__name__)
    return _action("swap", apply, name, index=index)


def _put(value: torch.Tensor, new: Any, index: Any) -> torch.Tensor:
    if index is not None:
        changed = value.clone()
        changed[index] = new
        return changed
    return new.clone() if isinstance(new, torch.Tensor) else torch.full_like(value, new)


def _value_in(other: Trace, op: Any, output: int) -> torch.Tensor:
    from torchlens.capture.values import read

    theirs = other[op.label]
    found = read(theirs.records[output]) if len(theirs.records) > output else None
    if found is None:
        raise TorchLensError(f"The other trace kept no value of {op.label!r}; trace it with save=True.")
    return found


def as_action(action: Any) -> Action:
    """An action from one of ours or from any ``f(value, op) -> value``."""
    if isinstance(action, Action):
        return action
    if isinstance(action, type) or not callable(action) or isinstance(action, torch.Tensor):
        raise InvalidArgumentError(
            f"action={short(action)} is not an action.",
            code="action_invalid",
            argument="action",
            value=action,
            remedy="Pass tl.zero(), tl.scale(...), tl.replace(...) or a function f(value, op) -> value.",
        )
    name = getattr(action, "__qualname__", type(action).__name__)
    return Action(name, lambda value, op, output: action(value, op), foreign=True)
