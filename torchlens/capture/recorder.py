"""The recorder: a function mode that writes one record per call of a torch function."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any
from weakref import ref

import torch

from torchlens._torch_compat import any_autocast_enabled, no_torch_function, transform_level
from torchlens.capture.arguments import SCALARS, template
from torchlens.capture.context import note_context
from torchlens.capture.functions import Plan
from torchlens.capture.opaque import OpaqueLog
from torchlens.capture.recording import ReadRecord, Site, TensorRecord
from torchlens.capture.writers import Target

PLAIN_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
"""Classes whose arguments need no search for tensors inside."""

_PLANS: dict[Any, Plan] = {}
_NO_KEYWORDS: dict[str, Any] = {}
_PLAIN_READS = (bool, int, float, complex, str, list)


class Recorder(OpaqueLog):
    """Records every call of a torch function made in this thread while active."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.sources.custom = self.custom_output
        self.failed_call: int | None = None
        self.failed_with: BaseException | None = None
        self._loss: TensorRecord | None = None

    def release(self) -> None:
        """Drop what only the run needed."""
        super().release()
        self.failed_with = self._loss = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        plan = _PLANS.get(func)
        if plan is None:
            plan = _PLANS[func] = Plan(func)
        sources = self.sources
        if (
            sources.writes
            or not (plan.simple and self._plain)
            or (plan.cast and any_autocast_enabled())
            or (kwargs and ("out" in kwargs or kwargs.get("inplace")))
        ):
            return self._record(func, plan, args, kwargs or _NO_KEYWORDS, sys._getframe(1))
        # The rest is the common case written out: it runs once per op, and each Python call would cost
        # as much as a small kernel.
        self.depth = 1
        try:
            known, stack, log, clock = sources.known, self.stack, self._log, self._clock
            held: list[Any] = []
            for value in args:
                kind = type(value)
                if kind in PLAIN_TENSORS:
                    record = known.get(id(value))
                    if record is None:
                        record = sources.find(value)
                    else:
                        live: Any = record.kept if record.weak is None else record.weak()
                        if live is not value or (
                            record.version is not None and value._version != record.version
                        ):
                            record = sources.find(value)
                    held.append(record)
                elif kind in SCALARS or (kind is tuple and _all_plain(value)):
                    held.append(value)
                else:
                    held.append(template(value, sources.find))
            frame = sys._getframe(1)
            if frame.f_back is stack.boundary:
                site: Site = (frame.f_code, frame.f_lasti)
            else:
                site = stack.site(frame)
            named = self._held_keywords(kwargs) if kwargs else _NO_KEYWORDS
            start = clock()
            try:
                out = func(*args, **kwargs) if kwargs else func(*args)
            except BaseException as error:
                self._note_failure(error, func, plan, tuple(held), named, start, site)
                raise
            end = clock()
            if out.__class__ is not torch.Tensor or transform_level() is not None:
                call = (func, plan, tuple(held), named, start, end, site, ())
                self._record_other(call, out, None, None)
                return out
            node = None
            try:
                version = out._version
            except RuntimeError:  # an inference tensor counts no writes
                version = None
            if out.requires_grad:
                record = TensorRecord("op", len(log), 0, ref(out), out.detach(), version)
                if self._keep_nodes:
                    node = self._node(out)
            else:
                record = TensorRecord("op", len(log), 0, None, out, version)
            known[id(out)] = record
            self.records.append(record)
            log.append(
                (func, plan.name, tuple(held), named, record, (record,), start, end, site,
                 stack.current, False, (), node, False)
            )  # fmt: skip
            return out
        finally:
            self.depth = 0

    def _record(
        self, func: Any, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        """Every other call: writing, after writes, tensors by keyword, edited, keeping less, or no op."""
        if plan.special:
            if not plan.contextual:
                return self._special(func, plan, args, kwargs, frame)
            if plan.exposes:
                self._leave(plan, args, frame)
            note_context(self.recording.contexts, len(self._log), plan.draws, args, kwargs)
        self.depth += 1
        try:
            seen = self._earlier_writes(args, kwargs) if self.sources.writes else ()
            held = self._held(args)
            named = self._held_keywords(kwargs) if kwargs else _NO_KEYWORDS
            writes = plan.writer is not None or "out" in kwargs or "inplace" in kwargs
            targets = self._guard(plan, args, kwargs) if writes else None
            versions = self._versions(args, kwargs) if plan.watched else None
            site = self.stack.site(frame)
            start = self._clock()
            try:
                out = func(*args, **kwargs)
            except BaseException as error:
                self._note_failure(error, func, plan, held, named, start, site)
                raise
            end = self._clock()
            if self._edit is not None:
                out = self._edit(self, plan.name, held, named, out, targets)
            self._record_other((func, plan, held, named, start, end, site, seen), out, targets, versions)
            return out
        finally:
            self.depth -= 1

    def _record_other(
        self,
        call: tuple[Any, ...],
        out: Any,
        targets: list[Target] | None,
        versions: list[tuple[torch.Tensor, int | None]] | None,
    ) -> None:
        """Record a call that returned several tensors or none, wrote in place, or keeps nothing."""
        func, plan, args, kwargs, start, end, site, seen = call
        if targets and not _holds_tensor(out):
            out = targets[0].tensor if len(targets) == 1 else tuple(t.tensor for t in targets)
        step, current = len(self._log), self.stack.current
        if not isinstance(self._keep, bool):
            self._keeps = bool(_holds_tensor(out)) and self._keep(self, plan.name, args, kwargs, out)
        held_out, outs, node = self._register_output(out, step, plan)
        if not outs:
            self._note_read(plan, args, out, site, current)
            return
        self._log.append(
            (func, plan.name, args, kwargs, held_out, outs, start, end, site, current,
             targets is not None, seen, node, False)
        )  # fmt: skip
        if targets or versions is not None:
            self._after_write(targets or [], versions, outs, step)

    def _special(
        self, func: Any, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        """Calls that are no op of their own: metadata, aliases, functions whose inside is recorded."""
        if plan.opened is not None:
            with self:
                return plan.opened(*args, **kwargs)
        self.depth += 1
        try:
            if plan.exposes:
                self._leave(plan, args, frame)
            return func(*args, **kwargs) if plan.metadata else self._pass_on(func, plan, args, kwargs)
        finally:
            self.depth -= 1

    def _held(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with each tensor replaced by its record."""
        find = self.sources.find
        return tuple([template(value, find) for value in args])

    def _held_keywords(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        find = self.sources.find
        return {
            name: value if value.__class__ in SCALARS else template(value, find)
            for name, value in kwargs.items()
        }

    def _pass_on(self, func: Any, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that only hands a tensor on: what it returns is known as its argument."""
        setter = getattr(func, "__name__", "") == "__set__"
        if setter and plan.name == "data" and len(args) > 1 and isinstance(args[1], torch.Tensor):
            with no_torch_function():
                source = self.sources.find(args[1])
                self.values.freeze(args[0])
            func(*args, **kwargs)
            with no_torch_function():
                self.sources.adopt(args[0], source)
            return None
        out = func(*args, **kwargs)
        if plan.name == "grad" and isinstance(out, torch.Tensor) and self._loss is not None:
            with no_torch_function():
                known = self.sources.peek(out)
                if known is None or (known.source == "op" and known.index <= self._loss.index):
                    self.sources.adopt(out, self._loss)
        if (
            isinstance(out, torch.Tensor)
            and plan.name != "grad"
            and args
            and isinstance(args[0], torch.Tensor)
        ):
            with no_torch_function():
                self.sources.alias(out, args[0])
        return out

    def _note_read(self, plan: Plan, args: tuple[Any, ...], value: Any, site: Any, call: int) -> None:
        """A tensor was read into Python: the value left the graph."""
        tensor = next((item for item in args if isinstance(item, TensorRecord)), None)
        if plan.name == "backward":
            self._loss = tensor
        if tensor is None or value is None:
            return
        plain = isinstance(value, _PLAIN_READS)
        if not plain and type(value).__name__ != "ndarray":
            return
        outcome = value if plain and not isinstance(value, list) else None
        self.recording.reads.append(ReadRecord(plan.name, tensor, outcome, site, len(self._log), call))

    def _note_failure(
        self,
        error: BaseException,
        func: Any,
        plan: Plan,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        start: int,
        site: Site,
    ) -> None:
        """Log the call that raised; it is dropped again if the model catches the exception."""
        if self.failed_with is error:
            return
        self.failed_with = error
        self.failed_call = len(self._log)
        self.failed_entry = (
            func, plan.name, args, kwargs, None, (), start, start, site, self.stack.current, False, (), None,
            True,
        )  # fmt: skip

    def keep_failed_call(self, error: BaseException) -> int | None:
        """Add the call that raised ``error`` to the log, if it was one that raised it."""
        if self.failed_with is not error or self.failed_call != len(self._log):
            return None
        self._log.append(self.failed_entry)
        return len(self._log) - 1


def _all_plain(values: tuple[Any, ...]) -> bool:
    """Whether a tuple (an index, a list of sizes) holds no tensor and nothing that could."""
    for value in values:
        kind = value.__class__
        if kind is slice:
            if (
                value.start.__class__ not in SCALARS
                or value.stop.__class__ not in SCALARS
                or value.step.__class__ not in SCALARS
            ):
                return False
        elif kind not in SCALARS:
            return False
    return True


def _holds_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (
        isinstance(value, (tuple, list)) and any(_holds_tensor(item) for item in value)
    )
