"""Runs without arithmetic: a copy of the model on fake tensors, which have shapes but no memory."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchlens._torch_compat import FakeTensorMode, fake_failures
from torchlens.capture.arguments import tensors_in
from torchlens.capture.modules import Contents, modules_of_callable, walk
from torchlens.errors import CaptureError

FAILURES: tuple[type[BaseException], ...] = fake_failures()
"""What torch raises where a fake tensor's values would be needed."""


@dataclass(frozen=True, slots=True)
class FakeRun:
    """A function and its arguments on fake tensors, and the mode to run them in."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    mode: Any


def as_fake(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> FakeRun:
    """A copy of the call on fake tensors; the real model and inputs are not touched.

    Raises
    ------
    CaptureError
        If the model cannot be copied, or the function reaches its modules in a way that a copy cannot
        replace.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    memo: dict[int, Any] = {}
    roots = modules_of_callable(function)
    for _, _, _, held in walk(roots):
        for tensor in _tensors_of(held) if held is not None else ():
            if id(tensor) not in memo:
                memo[id(tensor)] = _fake(tensor, mode)
    for _, tensor in tensors_in((args, kwargs), ""):
        if id(tensor) not in memo:
            memo[id(tensor)] = _fake(tensor, mode)
    try:
        given = copy.deepcopy((args, kwargs), memo)
        return FakeRun(_copied(function, roots, memo), *given, mode)
    except CaptureError:
        raise
    except Exception as error:
        raise CaptureError(
            f"The model cannot be copied for a fake run: {error}.",
            code="fake_copy_failed",
            remedy="Trace it with fake=False, or give it a __deepcopy__ that works.",
        ) from error


def _tensors_of(held: Contents) -> list[torch.Tensor]:
    loose = [value for _, value in held.loose if isinstance(value, torch.Tensor)]
    return [tensor for _, tensor in (*held.params, *held.buffers)] + loose


def _fake(tensor: torch.Tensor, mode: Any) -> torch.Tensor:
    """A fake twin on the same device; of a meta tensor, one on the CPU, so that it meets real inputs."""
    if tensor.device.type != "meta":
        made: torch.Tensor = mode.from_tensor(tensor)
        return made
    with mode:
        made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")
    return (
        nn.Parameter(made, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else made
    )


def _copied(
    function: Callable[..., Any], roots: dict[str, nn.Module], memo: dict[int, Any]
) -> Callable[..., Any]:
    if isinstance(function, nn.Module):
        return copy.deepcopy(function, memo)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, nn.Module):
        return types.MethodType(function.__func__, copy.deepcopy(owner, memo))  # type: ignore[attr-defined]
    if roots:
        raise CaptureError(
            "A function that calls modules of its own cannot run on fake tensors without touching them.",
            code="fake_needs_module",
            remedy="Pass the module, or a bound method of it.",
        )
    return function
