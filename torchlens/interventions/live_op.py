"""An op while it runs, as sites and actions see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlens.capture.functions import type_of
from torchlens.capture.recording import ModuleRecord, ParamRecord, records_in
from torchlens.errors import InterventionError

if TYPE_CHECKING:
    import torch

    from torchlens.capture.recorder import Recorder


class LiveModule:
    """A module that is running."""

    def __init__(self, record: ModuleRecord) -> None:
        self.address = record.addresses[0]
        self.addresses = tuple(record.addresses)
        self.class_name = record.class_name


class LiveParam:
    """A parameter that an op reads."""

    def __init__(self, record: ParamRecord) -> None:
        self.address = record.addresses[0]
        self.addresses = tuple(record.addresses)
        self.trainable = record.trainable


class LiveOp:
    """An op that just ran.

    Attributes
    ----------
    func_name, type : str
        The function's own and plain name.
    step : int
        Number of calls recorded before it.
    outs : list of tensor
        Its output tensors.
    """

    kind = "call"
    address = ""

    def __init__(
        self, recorder: Recorder, name: str, args: Any, kwargs: Any, outs: list[torch.Tensor]
    ) -> None:
        self.func_name = name
        self.step = recorder.step
        self.outs = outs
        self.label_there = ""
        self._recording = recorder.recording
        self._call = recorder.stack.current
        self._given = (args, kwargs)

    @classmethod
    def of_call(cls, recorder: Recorder, step: int, outs: list[torch.Tensor]) -> LiveOp:
        """An op that ran some calls ago."""
        record = recorder.recorded(step)
        op = cls(recorder, record.name, record.args, record.kwargs, outs)
        op.step, op._call = step, record.call
        return op

    @property
    def type(self) -> str:
        return type_of(self.func_name)

    @property
    def title(self) -> str:
        """Name for messages: labels exist only after the run."""
        return self.label_there or f"call {self.step} ({self.func_name})"

    @property
    def label(self) -> str:
        """Label of the op at this place in the trace that the edit comes from."""
        if self.label_there:
            return self.label_there
        raise InterventionError(
            "Labels are not known while the model runs.",
            code="edit_label_not_live",
            op=self.title,
            remedy="Edit a fork of the trace instead: trace.fork().do(...).",
        )

    @property
    def out(self) -> Any:
        """What it returned: a tensor, or a tuple of several."""
        return self.outs[0] if len(self.outs) == 1 else tuple(self.outs)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.outs[0].shape)

    @property
    def dtype(self) -> torch.dtype:
        return self.outs[0].dtype

    @property
    def device(self) -> torch.device:
        return self.outs[0].device

    @property
    def modules(self) -> tuple[LiveModule, ...]:
        """The modules around it, outermost first."""
        found: list[LiveModule] = []
        call = self._call
        while call >= 0:
            found.append(LiveModule(self._recording.modules[self._recording.module_calls[call].module]))
            call = self._recording.module_calls[call].parent
        return tuple(reversed(found))

    @property
    def module(self) -> LiveModule | None:
        """The innermost module around it."""
        modules = self.modules
        return modules[-1] if modules else None

    @property
    def params(self) -> tuple[LiveParam, ...]:
        """The parameters that it reads, directly or as views of them."""
        found: dict[int, ParamRecord] = {}
        for _, record in records_in(self._given):
            if record.source == "param":
                found[record.index] = self._recording.params[record.index]
            elif record.source == "op" and record.facts is not None:
                for index, param in enumerate(self._recording.params):
                    if param.facts is not None and param.facts.storage == record.facts.storage is not None:
                        found[index] = param
        return tuple(LiveParam(param) for param in found.values())

    def __repr__(self) -> str:
        return f"LiveOp({self.func_name!r}, step={self.step})"
