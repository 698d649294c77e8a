"""The recorder: a function mode that writes one record per call of a torch function."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from torchlens._torch_compat import (
    function_mode_depth,
    no_torch_function,
    saved_tensor_hooks_active,
    transform_level,
    version_of,
)
from torchlens.capture.arguments import flat_tensors, template
from torchlens.capture.functions import Plan
from torchlens.capture.modules import ModuleStack
from torchlens.capture.recording import (
    CallRecord,
    ConstantRecord,
    ReadRecord,
    Recording,
    TensorRecord,
)
from torchlens.capture.regions import Region, region_of
from torchlens.capture.sources import Sources
from torchlens.capture.values import ValueStore, facts_of
from torchlens.capture.writers import WHOLE, Target, keyword_targets

Keep = bool | Callable[[str, int], bool]
"""Whether outputs are kept: always, never, or by function name and op number."""

Edit = Callable[[Any, "Recorder", str], Any]
"""Replaces what a call returned, given the output, the recorder and the function's name."""

_PLAIN_READS = (bool, int, float, complex, str, list)


class Recorder(TorchFunctionMode):
    """Records every call of a torch function made in this thread while active.

    Parameters
    ----------
    recording : Recording
        Where records go.
    keep : bool or callable
        Which outputs to keep.
    clock : callable
        Returns nanoseconds.
    keep_nodes : bool
        Keep each output's autograd node until the end of the run.
    """

    def __init__(
        self,
        *,
        recording: Recording,
        keep: Keep = True,
        clock: Callable[[], int],
        keep_nodes: bool = False,
        edit: Edit | None = None,
        inspect: Callable[[torch.Tensor], str] | None = None,
    ) -> None:
        super().__init__()
        self.recording = recording
        self.sources = Sources(unknown=self.constant)
        self.values = ValueStore()
        self.stack: ModuleStack | None = None
        self.depth = 0
        self.failed_call: int | None = None
        self.failed_with: BaseException | None = None
        self._keep = keep
        self._clock = clock
        self._keep_nodes = keep_nodes
        self._edit = edit
        self._inspect = inspect
        self._plans: dict[Any, Plan] = {}
        self._log: list[tuple[Any, ...]] = []
        self._outer_modes = 0
        self._last_outputs: list[Any] = []

    # -- life cycle ----------------------------------------------------------------------------

    def __enter__(self) -> Recorder:
        if self.depth == 0:
            self._outer_modes = function_mode_depth()
        super().__enter__()
        return self

    def finish(self) -> None:
        """Turn the log into records and let go of everything that only the run needed."""
        with no_torch_function(), torch.no_grad():
            self.values.seal()
        self.recording.calls = [CallRecord._make(entry) for entry in self._log]

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
        if kwargs is None:
            kwargs = {}
        if plan.metadata:
            return func(*args, **kwargs)
        if plan.transparent:
            return self._pass_on(func, plan, args, kwargs)
        if plan.opened is not None:
            with self:
                return plan.opened(*args, **kwargs)
        self.depth += 1
        try:
            return self._record(func, plan, args, kwargs)
        finally:
            self.depth -= 1

    def _record(self, func: Any, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        find = self.sources.find
        held_args = tuple([template(value, find) for value in args])
        held_kwargs = {name: template(value, find) for name, value in kwargs.items()} if kwargs else kwargs
        seen = self._earlier_writes(args, kwargs) if self.sources.any_writes else ()
        targets = self._guard(plan, args, kwargs) if plan.writer is not None or kwargs else None
        versions = self._versions(args, kwargs) if plan.watched else None
        stack = self.stack
        site = stack.site(sys._getframe(2)) if stack is not None else ()
        call = stack.current if stack is not None else -1
        clock = self._clock
        start = clock()
        try:
            out = func(*args, **kwargs)
        except BaseException as error:
            self._note_failure(error, func, plan, held_args, held_kwargs, start, site, call)
            raise
        end = clock()
        if self._edit is not None:
            out = self._edited(out, plan)
        returned = out
        if targets and not _holds_tensor(out):
            returned = targets[0].tensor if len(targets) == 1 else tuple(t.tensor for t in targets)
        step = len(self._log)
        held_out, outs, node = self._register_output(returned, step, plan)
        if not outs:
            self._note_read(plan, held_args, returned, site, call)
            return out
        self._log.append(
            (func, plan.name, held_args, held_kwargs, held_out, outs, start, end, site, call,
             targets is not None, seen, node, False)
        )  # fmt: skip
        if targets or versions is not None:
            self._after_write(targets or [], versions, outs, step)
        return out

    def _register_output(self, out: Any, step: int, plan: Plan) -> tuple[Any, tuple[TensorRecord, ...], Any]:
        if type(out) is torch.Tensor and not self._outer_modes:
            record = self._register(out, step, 0, plan.name)
            return record, (record,), self._node(out)
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
        return False if saved_tensor_hooks_active() else tensor.grad_fn

    def _register(self, tensor: torch.Tensor, step: int, slot: int, name: str) -> TensorRecord:
        keep = self._keep if self._keep.__class__ is bool else self._keep(name, step)  # type: ignore[operator]
        try:
            version: int | None = tensor._version
        except RuntimeError:
            version = None
        record = TensorRecord("op", step, slot, weakref.ref(tensor), None, version)
        if keep and transform_level() is None:
            record.kept = tensor.detach()
            self.values.add(record)
        else:
            record.facts = facts_of(tensor)
        if self._inspect is not None:
            finite = self.recording.finite
            if finite is not None:
                status = self._inspect(tensor)
                finite[step] = _worse(finite.get(step), status)
        self.sources.register(tensor, record)
        return record

    # -- writes --------------------------------------------------------------------------------

    def _guard(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Target] | None:
        """Save what the coming call overwrites; its targets, or ``None`` if it writes nothing."""
        targets = list(plan.writer(args, kwargs)) if plan.writer is not None else []
        if kwargs and ("out" in kwargs or "inplace" in kwargs):
            targets += keyword_targets(args, kwargs)
        if not targets:
            return None
        with no_torch_function(), torch.no_grad():
            for target in targets:
                self.values.before_write(target.tensor, target.index, written_region(target))
        return targets

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
    def _versions(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[torch.Tensor, int | None]]:
        with no_torch_function():
            return [(tensor, version_of(tensor)) for tensor in flat_tensors((args, kwargs))]

    def _earlier_writes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Writes through other aliases that the arguments' memory depends on."""
        found: list[Any] = []
        with no_torch_function():
            for path, tensor in _paths((args, kwargs), ()):
                record = self.sources.peek(tensor)
                if record is not None:
                    found += [(path, w, full) for w, full in self.sources.writes_since(tensor, record)]
        return tuple(found)

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
            step = len(self._log)
            held_out, outs, node = self._register_output(output, step, Plan.opaque(name))
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
                self.sources.register(args[0], _renewed(source, args[0]))
            return func(*args, **kwargs)
        out = func(*args, **kwargs)
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
        with no_torch_function():
            record = TensorRecord(kind, index, 0, weakref.ref(tensor), None, version_of(tensor))
            try:
                record.facts = facts_of(tensor)
                if self._keep is not False:
                    record.kept = tensor.detach()
                    self.values.add(record)
            except (RuntimeError, ValueError):  # an uninitialised parameter has no facts yet
                record.facts = None
            self.sources.register(tensor, record)
        return record

    # -- failures and edits --------------------------------------------------------------------

    def _note_failure(
        self,
        error: BaseException,
        func: Any,
        plan: Plan,
        args: Any,
        kwargs: Any,
        start: int,
        site: Any,
        call: int,
    ) -> None:
        """Log the call that raised; it is dropped again if the model catches the exception."""
        if self.failed_with is error:
            return
        self.failed_with = error
        self.failed_call = len(self._log)
        self.failed_entry = (
            func, plan.name, args, kwargs, None, (), start, start, site, call, False, (), None, True
        )  # fmt: skip

    def keep_failed_call(self, error: BaseException) -> int | None:
        """Add the call that raised ``error`` to the log, if it was one that raised it."""
        if self.failed_with is not error or self.failed_call != len(self._log):
            return None
        self._log.append(self.failed_entry)
        return len(self._log) - 1

    def _edited(self, out: Any, plan: Plan) -> Any:
        assert self._edit is not None
        return self._edit(out, self, plan.name)


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


def _renewed(source: TensorRecord, tensor: torch.Tensor) -> TensorRecord:
    record = TensorRecord(
        source.source, source.index, source.slot, weakref.ref(tensor), source.kept, source.version
    )
    record.history, record.stamp, record.facts = source.history, source.stamp, source.facts
    return record


_ORDER = ("finite", "-inf", "+inf", "nan", "mixed")


def _worse(known: str | None, status: str) -> str:
    """Status of an op with several outputs: one bad kind, or mixed."""
    if known is None or known == "finite" or known == status:
        return status
    return known if status == "finite" else "mixed"
