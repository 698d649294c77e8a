"""Work whose inside is not seen: scripted modules, custom functions, memory handed out of torch."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from torchlens.capture.arguments import flat_tensors, template, tensors_in
from torchlens.capture.custom import CustomCall, function_around
from torchlens.capture.functions import EXPOSING, Plan
from torchlens.capture.recording import TensorRecord
from torchlens.capture.writing import WriteLog


class OpaqueLog(WriteLog):
    """A log that ties what comes out of unseen code to what went in."""

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

    def expose(self, value: Any) -> None:
        """From now on the memory of these tensors may change unseen: what is kept of it is copied."""
        self._plain = False
        with self.own_work(), torch.no_grad():
            for tensor in flat_tensors(value):
                known = self.sources.peek(tensor)
                if known is None or known.source != "param":
                    self.values.expose(tensor)
                    self.sources.expose(tensor)

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
