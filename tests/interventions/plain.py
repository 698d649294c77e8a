"""The truth that replays are held against: the plain model, edited by code that knows no torchlens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

Change = Callable[[torch.Tensor], torch.Tensor]


class EditCall(TorchFunctionMode):
    """Changes what the n-th call of a function gives, in place where that call wrote in place.

    ``others`` are ``(name, number)`` of further calls to change in the same way.
    """

    def __init__(
        self,
        name: str,
        number: int,
        change: Change,
        output: int = 0,
        *,
        others: Sequence[tuple[str, int]] = (),
    ) -> None:
        super().__init__()
        self.wanted = {(name, number), *others}
        self.change, self.output = change, output
        self.seen: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        self.seen[name] += 1
        if (name, self.seen[name]) not in self.wanted:
            return out
        if name == "__setitem__":
            args[0][args[1]] = self.change(args[0].clone())[args[1]]
            return out
        if isinstance(out, (tuple, list)):
            items = list(out)
            items[self.output] = self.change(items[self.output])
            return type(out)(items)
        if any(out is value for value in args) or (kwargs and out is kwargs.get("out")):
            out.copy_(self.change(out.clone()))
            return out
        return self.change(out)

    def check(self) -> None:
        """Every call that was to be changed was made."""
        assert all(self.seen[name] >= number for name, number in self.wanted)


def edited(model: Any, inputs: tuple[Any, ...], mode: EditCall, *, seed: int | None = None) -> Any:
    """The model's output under a plain edit."""
    if seed is not None:
        torch.manual_seed(seed)
    with torch.no_grad(), mode:
        out = model(*inputs)
    mode.check()
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
