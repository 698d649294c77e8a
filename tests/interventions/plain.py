"""The truth that replays are held against: the plain model, edited by code that knows no torchlens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

Change = Callable[[torch.Tensor], torch.Tensor]


class EditCall(TorchFunctionMode):
    """Changes what the n-th call of a function gives, in place where that call wrote in place."""

    def __init__(self, name: str, number: int, change: Change, output: int | None = None) -> None:
        super().__init__()
        self.name, self.number, self.change, self.output = name, number, change, output
        self.seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") != self.name:
            return out
        self.seen += 1
        if self.seen != self.number:
            return out
        if self.name == "__setitem__":
            args[0][args[1]] = self.change(args[0].clone())[args[1]]
            return out
        if isinstance(out, (tuple, list)):
            items = list(out)
            number = self.output or 0
            items[number] = self.change(items[number])
            return type(out)(items)
        if any(out is value for value in args) or (kwargs and out is kwargs.get("out")):
            out.copy_(self.change(out.clone()))
            return out
        return self.change(out)


def edited(model: Any, inputs: tuple[Any, ...], mode: EditCall, *, seed: int | None = None) -> Any:
    """The model's output under a plain edit."""
    if seed is not None:
        torch.manual_seed(seed)
    with torch.no_grad(), mode:
        out = model(*inputs)
    assert mode.seen >= mode.number
    return out


def hooked(
    model: torch.nn.Module, address: str, inputs: tuple[Any, ...], change: Change, *, seed: int | None = None
) -> Any:
    """The model's output with a forward hook on one module."""
    if seed is not None:
        torch.manual_seed(seed)
    handle = dict(model.named_modules())[address].register_forward_hook(lambda m, i, out: change(out))
    try:
        with torch.no_grad():
            return model(*inputs)
    finally:
        handle.remove()
