"""What must hold of any trace, checked against plain runs of the same model."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import torchlens as tl
from torchlens.trace.op import Op
from torchlens.trace.trace import Trace

Build = Callable[[], tuple[Any, ...]]
"""Makes ``(model, args)`` or ``(model, args, kwargs)`` afresh, the same every time."""

METADATA = frozenset(
    """
    size dim numel shape dtype device stride is_floating_point is_complex requires_grad layout ndim grad_fn
    __get__ __set__ __delete__ is_contiguous storage_offset element_size data_ptr requires_grad_ __len__
    is_nested untyped_storage _cdata register_hook as_subclass __hash__ __repr__ __format__
    broadcast_shapes result_type
    """.split()
)


class Cases(dict[str, tuple[Build, dict[str, Any]]]):
    """Builders by name, with the options that :func:`examine` is to be called with."""

    def __call__(self, **options: Any) -> Callable[[Build], Build]:
        def add(build: Build) -> Build:
            self[build.__name__] = (build, options)
            return build

        return add


def net(forward: Callable[..., Any], **parts: Any) -> nn.Module:
    """A module with this forward; tensors among its parts become buffers."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                plain = isinstance(part, Tensor) and not isinstance(part, nn.Parameter)
                self.register_buffer(name, part) if plain else setattr(self, name, part)

    Net.forward = forward  # type: ignore[method-assign, assignment]
    return Net()


def seeded(build: Build) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A fresh model and its arguments, with all generators seeded."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    model, args, *rest = build()
    return model, tuple(args), dict(rest[0]) if rest else {}


def plain(build: Build) -> Any:
    """What the model returns without a recorder."""
    model, args, kwargs = seeded(build)
    return model(*args, **kwargs)


def traced(build: Build, **options: Any) -> Trace:
    """A trace of a fresh model."""
    model, args, kwargs = seeded(build)
    return tl.trace(model, args, kwargs, **options)


def tensors(value: Any, seen: set[int] | None = None) -> Iterator[Tensor]:
    """Every tensor in ordinary containers and objects."""
    seen = set() if seen is None else seen
    if isinstance(value, Tensor):
        yield value
        return
    if isinstance(value, (str, bytes, int, float, type(None), nn.Module)) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, dict):
        children: Any = value.values()
    elif isinstance(value, (tuple, list, set)):
        children = value
    else:
        children = getattr(value, "__dict__", {}).values()
    for child in children:
        yield from tensors(child, seen)


def same(left: Tensor, right: Tensor) -> bool:
    """Equal in type, shape and every bit that matters (NaN equals NaN)."""
    if left.shape != right.shape or left.dtype != right.dtype or left.layout != right.layout:
        return False
    if left.is_quantized:
        return torch.equal(left.int_repr(), right.int_repr())
    if left.is_sparse:
        left, right = left.to_dense(), right.to_dense()
    if left.layout != torch.strided:
        left, right = left.to_dense(), right.to_dense()
    if left.device.type == "meta":
        return True
    return torch.equal(left.detach(), right.detach()) or torch.equal(
        torch.nan_to_num(left.detach()), torch.nan_to_num(right.detach())
    )


class Copies(TorchFunctionMode):
    """Copies what every call returned, at once: the independent truth on values."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[Tensor]]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        out = func(*args, **(kwargs or {}))
        if name not in METADATA:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                made = [item.detach().clone() for item in tensors(out) if not item.is_nested]
            if made:
                self.found.append((name, made))
        return out


def ancestors(trace: Trace, ends: list[Op] | None = None) -> set[Op]:
    """Everything that the outputs (or ``ends``) depend on by the recorded edges."""
    found: set[Op] = set()
    queue = list(trace.outputs if ends is None else ends)
    while queue:
        op = queue.pop()
        if op not in found:
            found.add(op)
            queue.extend(op.parents)
    return found


def calls(trace: Trace) -> list[Op]:
    """The recorded calls in order."""
    return [op for op in trace.ops if op.kind == "call"]


def names(trace: Trace) -> list[str]:
    """Function names of the recorded calls."""
    return [op.func_name for op in calls(trace)]


def source_names(trace: Trace) -> set[str]:
    """Inputs, parameters, buffers and functions that the outputs depend on."""
    found = ancestors(trace)
    return (
        {op.address for op in found if op.kind != "call"}
        | {op.func_name for op in found if op.kind == "call"}
        | {address for op in found for param in op.params for address in param.addresses}
    )


def check_output(build: Build, trace: Trace) -> None:
    """The traced model returned what the plain one returns."""
    wanted, found = list(tensors(plain(build))), list(tensors(trace.output))
    assert len(wanted) == len(found)
    assert all(map(same, wanted, found))


def check_values(build: Build, trace: Trace) -> None:
    """Every kept value is the copy that was made when that call returned."""
    model, args, kwargs = seeded(build)
    with Copies() as copies:
        model(*args, **kwargs)
    ops = calls(trace)
    taken = iter(ops)
    matched = 0
    for name, wanted in copies.found:
        if name.startswith("empty") or name.startswith("new_empty"):
            continue
        op = next((op for op in taken if op.func_name == name), None)
        if op is None:
            taken = iter(ops)
            continue
        found = list(tensors(op.out))
        if len(found) == len(wanted):
            matched += 1
            for one, other in zip(found, wanted):
                assert same(one, other), f"{op}: {one} but was {other}"
    if all(op.out is not None for op in ops):
        assert matched or not copies.found


def check_dependence(build: Build, trace: Trace) -> None:
    """An input that changes the output is an ancestor of it."""
    base = list(tensors(plain(build)))
    found = ancestors(trace)
    _, args, kwargs = seeded(build)
    for position, tensor in enumerate(list(tensors((args, kwargs)))):
        if (
            not tensor.is_floating_point()
            or tensor.is_nested
            or not tensor.numel()
            or tensor.layout != torch.strided
        ):
            continue
        model, again, named = seeded(build)
        other = list(tensors((again, named)))[position]
        with torch.no_grad():
            other.copy_(torch.rand_like(other.float()).to(other.dtype) * 2 - 0.7)
        changed = list(tensors(model(*again, **named)))
        if len(changed) != len(base) or not all(map(same, base, changed)):
            ops = [op for op in trace.inputs if op.facts[0] is not None]
            assert any(op in found and op.facts[0].shape == tuple(tensor.shape) for op in ops), position


def check_state(build: Build, **options: Any) -> None:
    """The model is as before, by its own state dict, buffers, flags and hooks."""
    model, args, kwargs = seeded(build)
    if not isinstance(model, nn.Module) or isinstance(model, torch.jit.ScriptModule):
        return
    before = {k: v.clone() for k, v in model.state_dict().items() if isinstance(v, Tensor)}
    objects = {k: id(v) for k, v in [*model.named_buffers(), *model.named_parameters()]}
    flags = [module.training for module in model.modules()]
    attributes = [sorted(vars(module)) for module in model.modules()]
    state = (
        torch.get_rng_state(),
        random.getstate(),
        torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
    )
    tl.trace(model, args, kwargs, **options)
    assert {k: id(v) for k, v in [*model.named_buffers(), *model.named_parameters()]} == objects
    assert all(same(v, model.state_dict()[k]) for k, v in before.items())
    assert [module.training for module in model.modules()] == flags
    assert [sorted(vars(module)) for module in model.modules()] == attributes
    assert torch.equal(torch.get_rng_state(), state[0])
    assert (random.getstate(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")) == state[1:]


def examine(
    build: Build, *, audit: int | None = 0, state: bool = True, values: bool = True, dependence: bool = True
) -> Trace:
    """All checks; the trace, for what a test wants to add."""
    trace = traced(build, audit=True)
    assert trace.completed
    assert trace.audit is not None
    assert audit is None or trace.audit.count == audit, trace.audit.outside
    check_output(build, trace)
    if values:
        check_values(build, trace)
    if dependence:
        check_dependence(build, trace)
    if state:
        check_state(build)
    lean = traced(build, save=False)
    assert names(lean) == names(trace)
    assert [[p.step for p in op.parents] for op in lean.ops] == [
        [p.step for p in op.parents] for op in trace.ops
    ]
    assert str(trace)
    return trace
