"""The recorder: a function mode that writes one record per call of a torch function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol
from weakref import ref

import torch
from torch.overrides import TorchFunctionMode

from torchlens._torch_compat import (
    UninitializedTensorMixin,
    any_autocast_enabled,
    function_mode_depth,
    no_torch_function,
    saved_tensor_hooks_active,
    storage_key,
    transform_level,
    version_of,
)
from torchlens.capture.arguments import SCALARS, filled, flat_tensors, template, tensors_in
from torchlens.capture.context import note_context
from torchlens.capture.custom import CustomCall, function_around
from torchlens.capture.facts import facts_of
from torchlens.capture.functions import EXPOSING, Plan
from torchlens.capture.modules import ModuleStack, no_module
from torchlens.capture.recording import (
    CallRecord,
    ConstantRecord,
    HeldNode,
    ModuleCall,
    ReadRecord,
    Recording,
    Site,
    TensorRecord,
)
from torchlens.capture.regions import Region, region_of
from torchlens.capture.sources import Sources
from torchlens.capture.values import ValueStore
from torchlens.capture.writers import GEOMETRY, WHOLE, Target, keyword_targets

Keep = bool | Callable[["Recorder", str, Any, Any, Any], bool]
"""Whether outputs are kept: always, never, or by the call's name, arguments and output."""


class Edit(Protocol):
    """Changes what calls and modules return."""

    def __call__(
        self, recorder: Recorder, name: str, args: Any, kwargs: Any, out: Any, targets: list[Target] | None
    ) -> Any:
        """What a call returns instead of ``out``."""

    def returned(self, recorder: Recorder, call: ModuleCall, output: Any) -> Any:
        """What a module call returns instead of ``output``."""

    def release(self) -> None:
        """Let go of the run."""


PLAIN_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
"""Classes whose arguments need no search for tensors inside."""

_NO_KEYWORDS: dict[str, Any] = {}
_PLAIN_READS = (bool, int, float, complex, str, list)


class Recorder(TorchFunctionMode):
    """Records every call of a torch function made in this thread while active.

    Parameters
    ----------
    recording : Recording
        Where records go.
    keep : bool or callable
        Which outputs to keep.
    keep_nodes : bool
        Keep each output's autograd node until the end of the run.
    """

    def __init__(
        self,
        *,
        recording: Recording,
        keep: Keep = True,
        keep_nodes: bool = False,
        edit: Edit | None = None,
        inspect: Callable[[torch.Tensor], str | None] | None = None,
    ) -> None:
        super().__init__()
        self.recording = recording
        self.records: list[TensorRecord] = []
        self.values = ValueStore(self.records)
        self.sources = Sources(unknown=self.constant, records=self.records, values=self.values)
        self.sources.custom = self.custom_output
        self.stack = ModuleStack(index={}, enter=no_module, log=())
        self.depth = 0
        self.failed_call: int | None = None
        self.failed_with: BaseException | None = None
        self._keep = keep
        self._keeps = keep is True
        self._clock: Callable[[], int] = time.perf_counter_ns
        self._keep_nodes = keep_nodes
        self._edit = edit
        self._inspect = inspect
        self._plans: dict[Any, Plan] = {}
        self._log: list[tuple[Any, ...]] = []
        self._plain = False
        self.custom: CustomCall | None = None
        self._loss: TensorRecord | None = None

    # -- life cycle ----------------------------------------------------------------------------

    def __enter__(self) -> Recorder:
        if self.depth == 0:
            alone = function_mode_depth() == 0
            self._plain = alone and self._keep is True and self._inspect is None and self._edit is None
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def use_clock(self, now: Callable[[], int]) -> None:
        """Take times from ``now``."""
        self._clock = now

    def finish(self) -> None:
        """Turn the log into records and let go of everything that only the run needed."""
        with no_torch_function(), torch.no_grad():
            self.values.seal()
        self.recording.log = self._log

    def release(self) -> None:
        """Drop what only the run needed and the reference cycles among its parts."""
        if self._edit is not None:
            self._edit.release()
        self.failed_with = self.custom = self._loss = None
        self.recording = Recording(name="", class_name="")
        self.values = ValueStore([])
        self.sources = Sources(unknown=_no_source, records=[], values=self.values)
        self.stack = ModuleStack(index={}, enter=no_module, log=())

    @property
    def log(self) -> Sized:
        """The calls recorded so far."""
        return self._log

    @property
    def step(self) -> int:
        """Number of calls recorded so far."""
        return len(self._log)

    # -- the hot path --------------------------------------------------------------------------

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        plan = self._plans.get(func)
        if plan is None:
            plan = self._plans[func] = Plan(func)
        sources = self.sources
        if (
            kwargs
            or sources.writes
            or not (plan.simple and self._plain)
            or (plan.cast and any_autocast_enabled())
        ):
            return self._record(func, plan, args, kwargs or _NO_KEYWORDS, sys._getframe(1))
        # The rest is the common case written out: it runs once per op, and each Python call would cost
        # as much as a small kernel.
        self.depth = 1
        try:
            known, stack, log, clock = sources.known, self.stack, self._log, self._clock
            held: list[Any] = []
            for value in args:
                kind = value.__class__
                if kind in PLAIN_TENSORS:
                    record = known.get(id(value))
                    if (
                        record is None
                        or not (record.kept is value or record.stands_for(value))
                        or (record.version is not None and value._version != record.version)
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
            start = clock()
            try:
                out = func(*args)
            except BaseException as error:
                self._note_failure(error, func, plan, tuple(held), _NO_KEYWORDS, start, site)
                raise
            end = clock()
            if out.__class__ is not torch.Tensor or transform_level() is not None:
                call = (func, plan, tuple(held), _NO_KEYWORDS, start, end, site, ())
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
                (func, plan.name, tuple(held), _NO_KEYWORDS, record, (record,), start, end, site,
                 stack.current, False, (), node, False)
            )  # fmt: skip
            return out
        finally:
            self.depth = 0

    def _record(
        self, func: Any, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        """Every other call: with keywords, writing, after writes, edited, keeping less, or no op at all."""
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

    def _leave(self, plan: Plan, args: tuple[Any, ...], frame: FrameType | None) -> None:
        """Content goes to code that is not seen: note its memory and the custom function around it."""
        if plan.name in EXPOSING:
            self.expose(args)
        around = function_around(frame)
        if around is not None:
            name, given = around
            with self.own_work():
                held = tuple(template(value, self.sources.find) for value in given)
            self.custom = CustomCall(name, held, self.stack.current)

    def custom_output(self, tensor: torch.Tensor) -> TensorRecord | None:
        """The record of a tensor that came out of the last custom function, recorded as one call."""
        custom = self.custom
        return self._log_custom(tensor, custom) if custom and custom.call == self.stack.current else None

    def settle_custom(self, output: Any, call: int) -> bool:
        """At the end of a module call: whether its custom function made something of its output."""
        custom, first = self.custom, len(self._log)
        if custom is None or custom.call != call:
            return False
        with self.own_work():
            for _, tensor in tensors_in(output, "", enter_objects=False):
                if self.sources.in_memory(tensor) is None:
                    self._log_custom(tensor, custom)
        self.custom = None
        return len(self._log) > first

    def _log_custom(self, tensor: torch.Tensor, custom: CustomCall) -> TensorRecord | None:
        self.expose(tensor)
        step = len(self._log)
        if step in self.recording.contexts:
            self.recording.contexts[step + 1] = self.recording.contexts.pop(step)
        self._log_opaque(custom.name, custom.args, {}, tensor, custom.call)
        return self.sources.peek(tensor)

    def expose(self, value: Any) -> None:
        """From now on the memory of these tensors may change unseen: what is kept of it is copied."""
        self._plain = False
        with self.own_work(), torch.no_grad():
            for tensor in flat_tensors(value):
                known = self.sources.peek(tensor)
                if known is None or known.source != "param":
                    self.values.expose(tensor)
                    self.sources.expose(tensor)

    def _held(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with each tensor replaced by its record."""
        find = self.sources.find
        return tuple([template(value, find) for value in args])

    def _held_keywords(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        find = self.sources.find
        return {name: template(value, find) for name, value in kwargs.items()}

    def _register_output(self, out: Any, step: int, plan: Plan) -> tuple[Any, tuple[TensorRecord, ...], Any]:
        with no_torch_function():
            tensors = flat_tensors(out)
            outs: list[TensorRecord] = []
            by_id: dict[int, TensorRecord] = {}
            for slot, tensor in enumerate(tensors):
                record = by_id[id(tensor)] = self._register(tensor, step, slot, plan.name)
                outs.append(record)
            held = template(out, lambda tensor: by_id[id(tensor)]) if outs else None
            return held, tuple(outs), self._node(tensors[0]) if outs else None

    def _node(self, tensor: torch.Tensor) -> Any:
        if not self._keep_nodes or tensor.grad_fn is None:
            return None
        return HeldNode(tensor.grad_fn) if saved_tensor_hooks_active() else tensor.grad_fn

    def _register(self, tensor: torch.Tensor, step: int, slot: int, name: str) -> TensorRecord:
        record = TensorRecord("op", step, slot, ref(tensor), None, version_of(tensor))
        if self._keeps and transform_level() is None:
            self.values.keep(record, tensor)
        else:
            record.facts = facts_of(tensor)
            self.sources.hold(tensor)
            if transform_level() is not None:
                self.sources.note_wrapped(tensor, record)
        if self._inspect is not None and self.recording.finite is not None:
            finite = self.recording.finite
            status = self._inspect(tensor)
            if status is not None:
                finite[step] = _worse(finite.get(step), status)
        self.sources.known[id(tensor)] = record
        self.records.append(record)
        return record

    # -- writes --------------------------------------------------------------------------------

    def _guard(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> list[Target] | None:
        """Save what the coming call overwrites; its targets, or ``None`` if it writes nothing."""
        kwargs = kwargs or {}
        targets = list(plan.writer(args, kwargs)) if plan.writer is not None else []
        if kwargs and ("out" in kwargs or "inplace" in kwargs):
            targets += keyword_targets(args, kwargs)
        if not targets:
            return None
        with no_torch_function(), torch.no_grad():
            for target in targets:
                if target.index is GEOMETRY or "out" in kwargs:
                    self.values.freeze(target.tensor)
                    self.sources.watch(target.tensor)
                if target.index is not GEOMETRY:
                    self.values.before_write(target.tensor, target.index, written_region(target))
        return [target for target in targets if target.index is not GEOMETRY] or None

    def _after_write(
        self,
        targets: list[Target],
        versions: list[tuple[torch.Tensor, int | None]] | None,
        outs: tuple[TensorRecord, ...],
        step: int,
    ) -> None:
        with no_torch_function():
            for tensor, before in versions or ():
                if before is not None and version_of(tensor) != before and not targets:
                    self.values.lose(tensor, "overwritten by a call that does not say that it writes")
                    targets = [*targets, Target(tensor)]
            for target in targets:
                known = self.sources.peek(target.tensor)
                if known is None or known.index != step or known.source != "op":
                    known = self._register(target.tensor, step, 0, "")
                    known.slot = outs[0].slot if outs else 0
                self.sources.wrote(target.tensor, written_region(target), step, known)

    @staticmethod
    def _versions(
        args: tuple[Any, ...], kwargs: dict[str, Any] | None
    ) -> list[tuple[torch.Tensor, int | None]]:
        with no_torch_function():
            return [(tensor, version_of(tensor)) for tensor in flat_tensors((args, kwargs))]

    def _earlier_writes(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> tuple[Any, ...]:
        """Writes through other aliases that the arguments' memory depends on."""
        found: list[Any] = []
        with no_torch_function():
            for path, tensor in _paths((args, kwargs or {}), ()):
                found += [(path, write, full) for write, full in self.sources.renew(tensor)]
        return tuple(found)

    def known_before(self, tensor: torch.Tensor, step: int) -> TensorRecord | None:
        """The record that stood for a tensor before call ``step``, whatever was written since."""
        record = self.sources.peek(tensor)
        if record is None or record.source != "op" or record.index < step:
            return record
        for earlier in reversed(self.records):
            if (earlier.source != "op" or earlier.index < step) and earlier.stands_for(tensor):
                return earlier
        return record

    @contextmanager
    def own_work(self) -> Iterator[None]:
        """Tensor work of the recorder itself: unseen by modes, not counted by the audit."""
        self.depth += 1
        try:
            with no_torch_function():
                yield
        finally:
            self.depth -= 1

    def record_opaque(self, name: str, args: Any, kwargs: Any, output: Any, call: int) -> None:
        """Add one call for a module whose inside cannot be seen."""
        with self.own_work():
            find = self.sources.find
            held = tuple(template(value, find) for value in args)
            named = {key: template(value, find) for key, value in kwargs.items()}
            self._log_opaque(name, held, named, output, call)

    def _log_opaque(self, name: str, held: Any, named: Any, output: Any, call: int) -> None:
        if not isinstance(self._keep, bool):
            self._keeps = self._keep(self, name, held, named, output)
        held_out, outs, node = self._register_output(output, len(self._log), Plan.opaque(name))
        if outs:
            self._log.append(
                (None, name, held, named, held_out, outs, 0, 0, (), call, False, (), node, False)
            )

    # -- what is no op -------------------------------------------------------------------------

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

    def constant(
        self, tensor: torch.Tensor, reason: str = "made where no recorded call was seen"
    ) -> TensorRecord:
        """A record for a tensor that nothing recorded explains."""
        index = len(self.recording.constants)
        record = self.source_record(tensor, "constant", index)
        self.recording.constants.append(ConstantRecord(reason, None, record))
        return record

    def source_record(self, tensor: torch.Tensor, kind: Any, index: int) -> TensorRecord:
        """A record for a tensor that exists before any call: parameter, buffer, input, constant."""
        record = TensorRecord(kind, index, 0, ref(tensor), None, version_of(tensor))
        if isinstance(tensor, UninitializedTensorMixin):
            pass
        elif self._keep is not False:
            self.values.keep(record, tensor)
        else:
            record.facts = facts_of(tensor)
            self.sources.hold(tensor)
        self.sources.known[id(tensor)] = record
        self.records.append(record)
        return record

    def recorded(self, step: int) -> CallRecord:
        """A call recorded so far."""
        return CallRecord._make(self._log[step])

    def wrote(self, step: int, tensor: torch.Tensor) -> bool:
        """Whether a call recorded so far returned ``tensor`` after writing to its memory."""
        key = storage_key(tensor)
        return (
            any(write[0] == step for write in self.sources.writes.get(key, ())) if key is not None else False
        )

    def stand_in(self, record: TensorRecord, tensor: torch.Tensor) -> None:
        """From now on ``tensor`` is what the call behind ``record`` gave."""
        made = TensorRecord("op", record.index, record.slot, ref(tensor), None, version_of(tensor))
        if record.kept is not None:
            made.kept = tensor.detach()
        else:
            made.facts = facts_of(tensor)
        self.sources.known[id(tensor)] = made
        self.records.append(made)
        call = self.recorded(record.index)
        outs = tuple(made if out.slot == record.slot else out for out in call.outs)
        held = filled(call.out, lambda out: made if out.slot == record.slot else out)
        self._log[record.index] = tuple(call._replace(out=held, outs=outs))

    # -- failures and edits --------------------------------------------------------------------

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


def _no_source(tensor: torch.Tensor) -> TensorRecord:
    raise RuntimeError("The run is over.")


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


def written_region(target: Target) -> Region | None:
    """Bytes that a write touches: of the indexed part for plain indices, of the whole tensor else."""
    if target.index is WHOLE or not _is_basic(target.index):
        return region_of(target.tensor)
    try:
        return region_of(target.tensor.detach()[target.index])
    except (IndexError, TypeError, RuntimeError):
        return region_of(target.tensor)


def _is_basic(index: Any) -> bool:
    if isinstance(index, tuple):
        return all(_is_basic(item) for item in index)
    if isinstance(index, slice):
        return not any(isinstance(x, torch.Tensor) for x in (index.start, index.stop, index.step))
    return index is None or index is ... or (isinstance(index, int) and not isinstance(index, bool))


def _holds_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (
        isinstance(value, (tuple, list)) and any(_holds_tensor(item) for item in value)
    )


def _paths(value: Any, path: tuple[Any, ...]) -> Any:
    """Every tensor of an argument structure with its path; ``(args, kwargs)`` at the top."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from _paths(item, (*path, position))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, (*path, key))


def _worse(known: str | None, status: str) -> str:
    """Status of an op with several outputs: one bad kind, or mixed."""
    if known is None or known == "finite" or known == status:
        return status
    return known if status == "finite" else "mixed"
