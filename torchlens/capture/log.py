"""The log of one run: the records of tensors, and what stands behind them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import ref

import torch
from torch.overrides import TorchFunctionMode

from torchlens._torch_compat import (
    UninitializedTensorMixin,
    function_mode_depth,
    no_torch_function,
    saved_tensor_hooks_active,
    storage_key,
    transform_level,
    version_of,
)
from torchlens.capture.arguments import filled, flat_tensors, template
from torchlens.capture.custom import CustomCall
from torchlens.capture.facts import facts_of
from torchlens.capture.functions import Plan
from torchlens.capture.modules import ModuleStack, no_module
from torchlens.capture.recording import (
    CallRecord,
    ConstantRecord,
    HeldNode,
    ModuleCall,
    Recording,
    TensorRecord,
)
from torchlens.capture.sources import Sources
from torchlens.capture.values import ValueStore
from torchlens.capture.writers import Target

if TYPE_CHECKING:
    from torchlens.capture.recorder import Recorder

Keep = bool | Callable[[Any, str, Any, Any, Any], bool]
"""Whether outputs are kept: always, never, or by the log and a call's name, arguments and output."""


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


Log = TypeVar("Log", bound="CallLog")


class CallLog(TorchFunctionMode):
    """The records of one run, and the state that making them needs.

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
        self.stack = ModuleStack(index={}, enter=no_module, log=())
        self.depth = 0
        self._keep = keep
        self._keeps = keep is True
        self._clock: Callable[[], int] = time.perf_counter_ns
        self._keep_nodes = keep_nodes
        self._edit = edit
        self._inspect = inspect
        self._log: list[tuple[Any, ...]] = []
        self._plain = False
        self.custom: CustomCall | None = None

    def __enter__(self: Log) -> Log:
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
        self.custom = None
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

    @contextmanager
    def own_work(self) -> Iterator[None]:
        """Tensor work of the recorder itself: unseen by modes, not counted by the audit."""
        self.depth += 1
        try:
            with no_torch_function():
                yield
        finally:
            self.depth -= 1

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

    def known_before(self, tensor: torch.Tensor, step: int) -> TensorRecord | None:
        """The record that stood for a tensor before call ``step``, whatever was written since."""
        record = self.sources.peek(tensor)
        if record is None or record.source != "op" or record.index < step:
            return record
        for earlier in reversed(self.records):
            if (earlier.source != "op" or earlier.index < step) and earlier.stands_for(tensor):
                return earlier
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


def _no_source(tensor: torch.Tensor) -> TensorRecord:
    raise RuntimeError("The run is over.")


def _worse(known: str | None, status: str) -> str:
    """Status of an op with several outputs: one bad kind, or mixed."""
    if known is None or known == "finite" or known == status:
        return status
    return known if status == "finite" else "mixed"
