"""One run of a model under the recorder, and what is put back afterwards."""

from __future__ import annotations

import inspect as python_inspect
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchlens._collector import rare_collections
from torchlens._torch_compat import no_torch_function, storage_key
from torchlens.capture.arguments import apart, named_arguments, template, tensors_in
from torchlens.capture.audit import DispatchAudit
from torchlens.capture.autograd import saved_bytes
from torchlens.capture.clock import Clock, clock_for
from torchlens.capture.compiled import EagerStance
from torchlens.capture.log import Edit, Keep
from torchlens.capture.modules import ModuleStack, modules_of_callable
from torchlens.capture.progress import progress
from torchlens.capture.recorder import Recorder
from torchlens.capture.recording import (
    Audit,
    Failure,
    InputRecord,
    ModuleCall,
    OutputRecord,
    Recording,
    TensorRecord,
)
from torchlens.capture.state import BufferState, RandomState
from torchlens.capture.table import ModuleTable
from torchlens.capture.writers import WHOLE
from torchlens.errors import CaptureError, warn

_ACTIVE = threading.local()

FRAMES_PER_CALL = 4
"""Python frames of a module call under hooks; without any they are three."""

SPARE_FRAMES = 200
"""Frames that recording itself needs where the model is nested as deeply as Python allows."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run keeps and checks; see :func:`torchlens.trace`."""

    keep: Keep = True
    audit: bool = False
    saved: bool = False
    restore_state: bool = True
    edit: Edit | None = None
    inspect: Callable[[torch.Tensor], str | None] | None = None
    clock: Clock | None = None
    mode: Any = None
    progress: bool | None = False


def record(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    name: str,
    options: Options,
) -> tuple[Recording, BaseException | None]:
    """Run ``function`` once and record it; an exception of the run is returned beside the recording."""
    if getattr(_ACTIVE, "running", False):
        raise CaptureError(
            "A trace is already being recorded in this thread.",
            code="trace_nested",
            remedy="Call tl.trace outside of the model that is being traced.",
        )
    run = _Run(function, name=name, options=options)
    _ACTIVE.running = True
    try:
        return run.record(args, kwargs)
    finally:
        _ACTIVE.running = False


class _Run:
    """The steps of one recorded run."""

    def __init__(self, function: Callable[..., Any], *, name: str, options: Options) -> None:
        self.function = function
        self.options = options
        self.roots = modules_of_callable(function)
        self.recording = Recording(name=name, class_name=class_name_of(function))
        self.recording.fake = options.mode is not None
        if options.inspect is not None:
            self.recording.finite = {}
        self.recorder = Recorder(
            recording=self.recording,
            keep=options.keep,
            keep_nodes=options.saved and torch.is_grad_enabled(),
            edit=options.edit,
            inspect=options.inspect,
        )
        self.table = ModuleTable(self.recorder)
        with self.recorder.own_work():
            self.table.add(self.roots)
        live = (item.record.live() for item in self.recording.params)
        self.clock = options.clock or clock_for(tensor for tensor in live if tensor is not None)
        self.recorder.use_clock(self.clock.now)
        self.stack = ModuleStack(
            index=self.table.index,
            enter=self._enter,
            log=self.recorder.log,
            writes=self.recorder.sources.writes,
        )
        self.stack.calls = self.recording.module_calls
        self.stack.on_enter, self.stack.on_exit = self._renew, self._on_exit
        self.recorder.stack = self.stack
        self.stance = EagerStance()

    def record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Recording, BaseException | None]:
        random = RandomState()
        slots = [] if self.recording.fake else self.table.buffer_slots
        buffers = BufferState(slots, lazy=self.table.lazy)
        self._name_inputs(args, kwargs)
        audit = DispatchAudit(self.recorder) if self.options.audit else None
        try:
            error = self._forward(args, kwargs, audit)
            changed = buffers.changed() if self.options.restore_state else []
            self._guard(changed)
            self._finish(error, audit)
            self._part_output(changed)
        finally:
            if self.options.restore_state:
                buffers.restore()
                random.restore()
            self._release()
        return self.recording, error

    def _guard(self, memories: list[torch.Tensor]) -> None:
        """Put aside what is kept of memory that is going to be put back to what it was before the run."""
        with self.recorder.own_work(), torch.no_grad():
            for memory in memories:
                self.recorder.values.before_write(memory, WHOLE, None)

    def _part_output(self, memories: list[torch.Tensor]) -> None:
        """Copy what the model returned of such memory, so that its output stays what it was."""
        keys = {storage_key(memory) for memory in memories} - {None}
        if keys:
            with no_torch_function(), torch.no_grad():
                self.recording.output = apart(self.recording.output, lambda t: storage_key(t) in keys)

    def _release(self) -> None:
        """Break the reference cycles of the run, so that dropping the trace frees its memory at once."""
        self.stack.release()
        self.recorder.release()

    def _forward(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], audit: DispatchAudit | None
    ) -> BaseException | None:
        """Run the model with hooks and modes in place; they are gone again on every way out."""
        recursion = sys.getrecursionlimit()
        sys.setrecursionlimit(recursion * FRAMES_PER_CALL // 3 + SPARE_FRAMES)
        self.stack.install(sys._getframe())
        self.stance.ensure()
        try:
            with ExitStack() as contexts:
                contexts.enter_context(rare_collections())
                contexts.enter_context(progress(self.recorder.log, setting=self.options.progress))
                for context in (self.options.mode, self.recorder, audit):
                    if context is not None:
                        contexts.enter_context(context)
                self.recording.output = self.function(*args, **kwargs)
        except BaseException as error:
            self.recording.failure = Failure(
                error, self.recorder.keep_failed_call(error), self._failed_calls()
            )
            return error
        finally:
            self.stack.remove()
            self.stance.release()
            sys.setrecursionlimit(recursion)
        return None

    def _failed_calls(self) -> list[int]:
        """Module calls that the exception passed through, outermost first."""
        calls = self.recording.module_calls
        step = self.recorder.step
        return [i for i, call in enumerate(calls) if call.failed and call.end_op in (-1, step, step - 1)]

    def _finish(self, error: BaseException | None, audit: DispatchAudit | None) -> None:
        for call in self.recording.module_calls:
            if call.end_op < 0:
                call.end_op = self.recorder.step
        if error is None:
            self._name_outputs()
        self.recorder.finish()
        self.recording.timing.clock = self.clock.name
        self.recording.timing.durations = [self.clock.resolve(self.recording.log)]
        self.table.settle()
        if self.options.saved and torch.is_grad_enabled():
            self.recording.saved = saved_bytes(self.recording)
            self.recording.drop_graph()
        if audit is not None:
            self.recording.audit = Audit(dict(audit.outside), len(self.recording.constants))

    def _name_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen: set[int] = set()
        texts = []
        for name, value in named_arguments(self.function, args, kwargs):
            for address, tensor in tensors_in(value, name):
                if id(tensor) in seen or self.recorder.sources.peek(tensor) is not None:
                    continue
                seen.add(id(tensor))
                made = self.recorder.source_record(tensor, "input", len(self.recording.inputs))
                self.recording.inputs.append(InputRecord(address, made))
                shape = made.facts.shape if made.facts is not None else ()
                texts.append(f"{address} {shape}")
        self.recording.input_text = ", ".join(texts)

    def _name_outputs(self) -> None:
        output = self.recording.output
        if python_inspect.isgenerator(output):
            warn(
                "The forward returned a generator, whose body has not run.",
                code="trace_output_generator",
                remedy="Trace a function that consumes it, such as lambda *a: list(model(*a)).",
            )
        with no_torch_function():
            for address, tensor in tensors_in(output, "output"):
                sources = self.recorder.sources
                sources.find(tensor)
                seen = tuple(((), w, full) for w, full in sources.renew(tensor))
                self.recording.outputs.append(OutputRecord(address, sources.find(tensor), seen))

    def _enter(self, module: nn.Module) -> int:
        self.stance.ensure()
        with self.recorder.own_work():
            return self.table.enter(module)

    def _on_exit(self, position: int, module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        """Close a module call; what is returned takes the place of its output."""
        call, recorder = self.recording.module_calls[position], self.recorder
        if recorder.custom is not None and recorder.settle_custom(output, position):
            call.end_op = recorder.step
        unseen = call.end_op == call.first_op and self._is_opaque(module, output)
        if unseen:
            call.opaque = True
            name = self.recording.modules[call.module].class_name
            recorder.record_opaque(name, args, kwargs, output, position)
            call.end_op = recorder.step
        edited = output
        if self.options.edit is not None:
            edited = self.options.edit.returned(recorder, call, output)
        call.inputs = self._given(call, args, kwargs)
        self._renew(edited)
        if edited.__class__ is torch.Tensor:
            call.output = recorder.sources.peek(edited)
        else:
            call.output = template(edited, recorder.sources.peek)
        return edited if edited is not output else None

    def _given(self, call: ModuleCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments of a module call, with the records that stood for tensors when it began."""
        if not self.recorder.sources.writes:
            peek = self.recorder.sources.peek
            if len(args) == 1 and not kwargs and args[0].__class__ is torch.Tensor:
                return ((peek(args[0]),), {})
            return (template(args, peek), template(kwargs, peek) if kwargs else {})

        def before(tensor: torch.Tensor) -> TensorRecord | None:
            return self.recorder.known_before(tensor, call.first_op)

        return (template(args, before), template(kwargs, before) if kwargs else {})

    def _renew(self, value: Any) -> None:
        """Note the present content of tensors that were written through another alias."""
        if self.recorder.sources.writes:
            with self.recorder.own_work():
                for _, tensor in tensors_in(value, "", enter_objects=False):
                    self.recorder.sources.renew(tensor)

    def _is_opaque(self, module: nn.Module, output: Any) -> bool:
        """Whether a call recorded nothing and yet returned a tensor that nothing else explains."""
        if isinstance(module, torch.jit.ScriptModule):
            return any(True for _ in tensors_in(output, ""))
        return any(not self.recorder.sources.explains(tensor) for _, tensor in tensors_in(output, ""))


def class_name_of(function: Callable[..., Any]) -> str:
    """The title of a trace: the class of a module, or the name of a function."""
    owner = getattr(function, "__self__", None)
    if isinstance(function, nn.Module):
        return type(function).__name__
    if isinstance(owner, nn.Module):
        return f"{type(owner).__name__}.{getattr(function, '__name__', 'call')}"
    return getattr(function, "__name__", type(function).__name__)
