"""The modules of a model under all of their names, and which of them is running."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sized
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn

from torchlens.capture.callsite import chain
from torchlens.capture.recording import ModuleCall, ModuleRecord

LARGEST_SCANNED = 1024
"""Containers on a module longer than this are not searched for modules and tensors."""

_INTERNAL = frozenset(nn.Module().__dict__)
_PLAIN = frozenset({int, float, bool, str, type(None)})


def attributes(module: nn.Module) -> dict[str, Any]:
    """The instance attributes of a module, past any ``__getattr__`` of its own."""
    found = object.__getattribute__(module, "__dict__")
    return found if isinstance(found, dict) else {}


def registered(module: nn.Module, kind: str) -> Iterator[tuple[str, Any]]:
    """Registered ``_modules``, ``_parameters`` or ``_buffers`` of one module, ``None`` left out."""
    if isinstance(module, torch.jit.ScriptModule):
        named: dict[str, Callable[[], Any]] = {
            "_modules": module.named_children,
            "_parameters": lambda: module.named_parameters(recurse=False),
            "_buffers": lambda: module.named_buffers(recurse=False),
        }
        yield from named[kind]()
        return
    held = attributes(module).get(kind)
    for name, value in list(held.items()) if held else ():
        if value is not None:
            yield name, value


def unregistered(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Modules and tensors in plain attributes, lists, tuples and dicts of a module."""
    held = attributes(module)
    for name in [name for name in held if name not in _INTERNAL]:
        value = held[name]
        if value.__class__ in _PLAIN:
            continue
        if isinstance(value, (nn.Module, torch.Tensor)):
            yield name, value
        elif isinstance(value, (list, tuple)) and len(value) <= LARGEST_SCANNED:
            yield from ((f"{name}[{i}]", v) for i, v in enumerate(value) if _of_interest(v))
        elif isinstance(value, dict) and len(value) <= LARGEST_SCANNED:
            yield from ((f"{name}[{k!r}]", v) for k, v in list(value.items()) if _of_interest(v))


def _of_interest(value: Any) -> bool:
    return isinstance(value, (nn.Module, torch.Tensor))


def joined(prefix: str, name: str) -> str:
    """Address of a child."""
    return f"{prefix}.{name}" if prefix else name


class Contents(NamedTuple):
    """What one module holds, by name: registered modules, parameters and buffers, and loose ones."""

    modules: list[tuple[str, nn.Module]]
    params: list[tuple[str, torch.Tensor]]
    buffers: list[tuple[str, torch.Tensor]]
    loose: list[tuple[str, Any]]


def contents(module: nn.Module) -> Contents:
    """What a module holds, read in one go."""
    if isinstance(module, torch.jit.ScriptModule):
        kinds = [list(registered(module, kind)) for kind in ("_modules", "_parameters", "_buffers")]
    else:
        held = attributes(module)
        kinds = [
            [(name, value) for name, value in held.get(kind, {}).items() if value is not None]
            for kind in ("_modules", "_parameters", "_buffers")
        ]
    modules, params, buffers = kinds
    return Contents(modules, params, buffers, list(unregistered(module)))


def walk(roots: dict[str, nn.Module]) -> Iterator[tuple[str, nn.Module, bool, Contents | None]]:
    """Every module below the roots: ``(address, module, registered, contents)``.

    A shared module comes once per address, and its contents at the first.  Iterative, so that depth and
    cycles do not matter.
    """
    stack = [(address, module, True) for address, module in reversed(list(roots.items()))]
    entered: set[int] = set()
    while stack:
        address, module, known = stack.pop()
        if id(module) in entered:
            yield address, module, known, None
            continue
        entered.add(id(module))
        held = contents(module)
        yield address, module, known, held
        prefix = f"{address}." if address else ""
        loose = [(prefix + n, m, False) for n, m in held.loose if isinstance(m, nn.Module)]
        children = [(prefix + n, m, known) for n, m in held.modules]
        stack.extend(item for item in reversed(children + loose) if id(item[1]) not in entered or item[2])


def modules_of_callable(function: Callable[..., Any]) -> dict[str, nn.Module]:
    """The modules that a plain function works with: of its object, its closure and its globals."""
    while hasattr(function, "func") and hasattr(function, "args"):  # functools.partial
        function = function.func
    owner = getattr(function, "__self__", None)
    if isinstance(owner, nn.Module):
        return {"": owner}
    if isinstance(function, nn.Module):
        return {"": function}
    function = inspect.unwrap(function)
    found: dict[str, nn.Module] = {}
    if owner is not None and hasattr(owner, "__dict__"):
        found.update({n: m for n, m in vars(owner).items() if isinstance(m, nn.Module)})
    code = getattr(function, "__code__", None)
    if code is not None:
        scope = getattr(function, "__globals__", {})
        found.update({n: scope[n] for n in code.co_names if isinstance(scope.get(n), nn.Module)})
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            content = _content(cell)
            if isinstance(content, nn.Module):
                found[name] = content
    return found


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


class ModuleStack:
    """Which module calls are open in the traced thread, kept by torch's global module hooks."""

    def __init__(
        self,
        *,
        index: dict[int, int],
        enter: Callable[[nn.Module], int],
        log: Sized,
        writes: Sized = (),
    ) -> None:
        self.calls: list[ModuleCall] = []
        self.current = -1
        self.boundary: FrameType | None = None
        self.on_enter: Callable[[Any], None] | None = None
        self.on_exit: Callable[[int, nn.Module, Any, Any, Any], Any] | None = None
        self._stack: list[tuple[int, FrameType | None, FrameType | None]] = []
        self._index = index
        self._enter = enter
        self._log = log
        self._writes = writes
        self._thread = threading.get_ident()
        self._handles: list[Any] = []

    def install(self, base: FrameType | None) -> None:
        """Start to follow module calls; ``base`` is the frame that runs the model."""
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        self._stack = [(-1, base, None)]
        self.boundary = base
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, with_kwargs=True, always_call=True),
        ]

    def remove(self) -> None:
        """Stop to follow module calls."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._stack = []
        self.boundary = None

    def release(self) -> None:
        """Let go of the run that this stack belonged to."""
        self.calls, self.on_enter, self.on_exit = [], None, None
        self._index, self._enter = {}, no_module

    def site(self, frame: FrameType | None) -> tuple[Any, ...]:
        """Chain of sites from ``frame`` to the innermost open module call.

        An exception that is no ``Exception`` leaves calls behind that have ended; they are dropped
        when the walk does not meet their frame.
        """
        site, met = chain(frame, self.boundary)
        while not met and len(self._stack) > 1:
            self._close(self._stack.pop()[0], failed=True)
            self.current, self.boundary, _ = self._stack[-1]
            site, met = chain(frame, self.boundary)
        return site

    def _close(self, position: int, *, failed: bool) -> ModuleCall:
        call = self.calls[position]
        call.end_op = len(self._log)
        call.failed = call.failed or failed
        return call

    def _before(self, module: nn.Module, args: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        frame = sys._getframe(1)
        outer = frame.f_back if frame.f_code.co_name == "inner" else frame
        index = self._index.get(id(module))
        if index is None:
            index = self._enter(module)
        site = self.site(_caller(outer))
        if self._writes and self.on_enter is not None:
            self.on_enter(args)
        self.calls.append(ModuleCall(index, self.current, site, len(self._log)))
        self.current = len(self.calls) - 1
        self.boundary = frame
        self._stack.append((self.current, frame, outer))

    def _after(self, module: nn.Module, args: Any, *rest: Any) -> Any:
        """Close a call.  torch passes ``(kwargs, output)``, but only the output if the forward raised."""
        if threading.get_ident() != self._thread:
            return None
        frame = sys._getframe(1)
        outer = frame.f_back if frame.f_code.co_name == "inner" else frame
        depth = len(self._stack) - 1
        while depth > 0 and self._stack[depth][2] is not outer:
            depth -= 1
        if depth == 0:
            return None
        for position, _, _ in self._stack[depth + 1 :]:
            self._close(position, failed=True)
        position = self._stack[depth][0]
        call = self._close(position, failed=len(rest) < 2)
        del self._stack[depth:]
        self.current, self.boundary, _ = self._stack[-1]
        if not call.failed and self.on_exit is not None:
            return self.on_exit(position, module, args, rest[0], rest[1])
        return None

    def open_calls(self) -> list[int]:
        """Indices of the open calls, outermost first."""
        return [position for position, _, _ in self._stack if position >= 0]


def no_module(module: nn.Module) -> int:
    """Index of a module where none are known."""
    return -1


def _caller(frame: FrameType | None) -> FrameType | None:
    """The frame that called a module, past torch's own wrapper."""
    caller = frame.f_back if frame is not None else None
    if caller is not None and caller.f_code.co_name == "_wrapped_call_impl":
        return caller.f_back
    return caller


def module_record(module: nn.Module, address: str, *, known: bool) -> ModuleRecord:
    """Facts of one module under its first address."""
    kind = type(module)
    name = getattr(module, "original_name", None) if isinstance(module, torch.jit.ScriptModule) else None
    return ModuleRecord(
        addresses=[address],
        class_name=name if isinstance(name, str) else kind.__name__,
        params=[],
        buffers=[],
        registered=known,
        training=bool(attributes(module).get("training", False)),
        holds_state=False,
    )
