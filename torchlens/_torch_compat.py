"""Every private or version-dependent name of torch that this package touches, in one place.

``tests/test_torch_compat.py`` checks each of them on the installed torch, so that an upgrade fails
there, by name, before it fails anywhere else.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch._subclasses import FakeTensorMode as FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.parameter import UninitializedTensorMixin as UninitializedTensorMixin  # type: ignore[attr-defined]
from torch.utils._python_dispatch import TorchDispatchMode

OLDEST_TORCH = "2.4"
"""Oldest release that the tests run on."""

NEWEST_TORCH = "2.13"
"""Newest release that the tests run on."""

no_torch_function = torch._C.DisableTorchFunction
"""Context in which tensor calls reach no function mode and no tensor subclass: for our own work."""

function_mode_depth = torch._C._len_torch_function_stack
"""Number of active function modes."""

transform_level = torch._C._functorch.peek_interpreter_stack
"""``None`` outside of ``torch.func`` transforms."""

is_transform_wrapper = torch._C._functorch.is_functorch_wrapped_tensor
unwrap_transform = torch._C._functorch.get_unwrapped


FUNCTION_APPLY = torch.autograd.Function.apply.__func__.__code__  # type: ignore[attr-defined]
"""Code of ``Function.apply``, whose locals are ``cls`` and ``args``."""

any_autocast_enabled = torch._C._is_any_autocast_enabled
"""Whether automatic casting is on, on any device."""


class DispatchMode(TorchDispatchMode):
    """A dispatch mode that works without importing the compiler front end.

    torch wraps ``__torch_dispatch__`` so that its first call imports dynamo, which takes seconds and
    replaces ``torch.manual_seed``.
    """

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


def storage_key(tensor: torch.Tensor) -> int | None:
    """Identity of the memory behind a tensor (``None`` where there is no single storage).

    The address of the ``StorageImpl``; it exists on meta and fake tensors too.
    """
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError, AttributeError):
        return None


def is_fake(tensor: torch.Tensor) -> bool:
    """Whether a tensor has no memory although it says that it is on a device."""
    return isinstance(tensor, FakeTensor)


def storage_guard(tensor: torch.Tensor) -> StorageWeakRef | None:
    """While it lives, no other storage gets the same :func:`storage_key`; the memory may go."""
    try:
        return StorageWeakRef(tensor.untyped_storage())
    except (NotImplementedError, RuntimeError, AttributeError):
        return None


def version_of(tensor: torch.Tensor) -> int | None:
    """Count of in-place writes to a tensor's memory, ``None`` for inference tensors."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return None


def saved_tensor_hooks_active() -> bool:
    """Whether the user's own hooks on tensors saved for backward are in force."""
    top = torch._C._autograd._top_saved_tensors_default_hooks
    try:
        return top(True) is not None
    except TypeError:  # before torch 2.6 the function takes no argument
        return top() is not None  # type: ignore[call-arg]


def dynamo_loaded() -> bool:
    """Whether the compiler front end is imported (importing it costs seconds and patches torch)."""
    return "torch._dynamo" in sys.modules


def without_function_override(function: Any) -> Any:
    """A copy of a Python function of torch that does not hand itself over to function modes.

    Its inner calls then reach the active mode one by one.
    """
    import types

    names = (
        "has_torch_function",
        "has_torch_function_unary",
        "has_torch_function_variadic",
    )
    scope = {**function.__globals__, **dict.fromkeys(names, lambda *_args: False)}
    copy = types.FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def fake_failures() -> tuple[type[BaseException], ...]:
    """What fake tensors raise where the forward needs a value or a shape that depends on values."""
    from torch._subclasses import fake_tensor

    names = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException")
    return tuple(getattr(fake_tensor, name) for name in names)
