"""Edits made while a model runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from torchlens.capture.arguments import flat_tensors
from torchlens.capture.recording import ModuleCall, Recording
from torchlens.capture.writers import WHOLE, Target
from torchlens.errors import InterventionError
from torchlens.interventions.actions import Action
from torchlens.interventions.align import Place
from torchlens.interventions.apply import changed, chosen_outputs, write_back, written_to
from torchlens.interventions.live_op import LiveOp
from torchlens.interventions.rewrite import with_tensors
from torchlens.interventions.sites import ModuleOutput, Site

if TYPE_CHECKING:
    from torchlens.capture.recorder import Recorder

Outputs = tuple[int, ...] | None


@dataclass(frozen=True)
class Wanted:
    """One edit to be made live: by its site, or at the places where it was made before."""

    site: Site
    action: Action
    places: dict[Place, tuple[str, Outputs]] | None = None
    """Label and outputs of each place; ``None`` to ask the site."""


class LiveEdits:
    """Makes edits during a run; the recorder asks it after every call.

    Attributes
    ----------
    hits : list of dict
        For each edit, the calls that it hit in the first run, with the outputs edited.
    """

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self.wanted = list(wanted)
        self.hits: list[dict[int, tuple[int, ...]]] = [{} for _ in self.wanted]
        self._recorder: Recorder | None = None
        self._runs = 0
        self._seen: Counter[Place] = Counter()
        self._passes: list[int] = []
        self._of_module: Counter[int] = Counter()
        self._placed = any(one.places is not None for one in self.wanted)

    # -- after a call --------------------------------------------------------------------------

    def __call__(
        self, recorder: Recorder, name: str, args: Any, kwargs: Any, out: Any, targets: list[Target] | None
    ) -> Any:
        """What the call is to return."""
        self._follow(recorder)
        tensors = flat_tensors(out) or [target.tensor for target in targets or ()]
        if not tensors:
            return out
        place = self._place(recorder, name) if self._placed else None
        op = LiveOp(recorder, name, args, kwargs, tensors)
        news: dict[int, torch.Tensor] = {}
        for number, one in enumerate(self.wanted):
            found = self._meets(one, op, place)
            if found is None:
                continue
            op.label_there, outputs = found
            chosen = chosen_outputs(len(tensors), outputs, op.title)
            self._note(number, op.step, chosen)
            for slot in chosen:
                value = news.get(slot, tensors[slot])
                news[slot] = changed(value, one.action, op, slot, op.title)
        return self._returned(recorder, out, tensors, news, targets or [])

    def _meets(self, one: Wanted, op: LiveOp, place: Place | None) -> tuple[str, Outputs] | None:
        """Label, if known, and outputs of an op that an edit is about."""
        if one.places is not None:
            return one.places.get(place) if place is not None else None
        if isinstance(one.site, ModuleOutput) or not one.site.matches(op):
            return None
        return "", one.site.outputs(op)

    def _returned(
        self,
        recorder: Recorder,
        out: Any,
        tensors: list[torch.Tensor],
        news: dict[int, torch.Tensor],
        targets: list[Target],
    ) -> Any:
        instead: dict[int, torch.Tensor] = {}
        for slot, new in news.items():
            target = written_to(tensors[slot], targets)
            if target is not None and (target.index is not WHOLE or not needs_gradient(new)):
                write_back(target, new, recorder.values)
            else:
                instead[id(tensors[slot])] = new
        return with_tensors(out, instead) if instead else out

    # -- at the end of a module call -----------------------------------------------------------

    def returned(self, recorder: Recorder, call: ModuleCall, output: Any) -> Any:
        """What a module is to return instead of ``output``; the same object if no edit is about it."""
        self._follow(recorder)
        addresses = recorder.recording.modules[call.module].addresses
        for number, one in enumerate(self.wanted):
            if one.places is None and isinstance(one.site, ModuleOutput) and one.site.names(addresses):
                output = self._edit_module(recorder, number, one, call, output)
        return output

    def _edit_module(
        self, recorder: Recorder, number: int, one: Wanted, call: ModuleCall, output: Any
    ) -> Any:
        tensors = [t for t in flat_tensors(output) if _made_inside(recorder, call, t)]
        if not tensors:
            return output
        title = addresses_text(recorder, call)
        instead: dict[int, torch.Tensor] = {}
        for slot in chosen_outputs(len(tensors), one.site.outputs(None), title):
            tensor = tensors[slot]
            record = recorder.sources.find(tensor)
            op = LiveOp.of_call(recorder, record.index, [tensor])
            with recorder.own_work():
                new = changed(tensor, one.action, op, record.slot, title)
                if recorder.wrote(record.index, tensor) and not needs_gradient(new):
                    write_back(Target(tensor), new, recorder.values)
                    new = tensor
                recorder.stand_in(record, new)
            instead[id(tensor)] = new
            done = self.hits[number].get(record.index, ()) if self._runs == 1 else ()
            self._note(number, record.index, (*done, record.slot))
        return with_tensors(output, instead)

    # -- where we are --------------------------------------------------------------------------

    def _follow(self, recorder: Recorder) -> None:
        """Start to count again for each run."""
        if recorder is not self._recorder:
            self._recorder = recorder
            self._runs += 1
            self._seen, self._passes, self._of_module = Counter(), [], Counter()

    def _note(self, number: int, step: int, outputs: tuple[int, ...]) -> None:
        if self._runs == 1:
            self.hits[number][step] = outputs

    def _place(self, recorder: Recorder, name: str) -> Place:
        calls = recorder.recording.module_calls
        for call in calls[len(self._passes) :]:
            self._of_module[call.module] += 1
            self._passes.append(self._of_module[call.module])
        current = recorder.stack.current
        where: Place = ("call", None, name)
        if current >= 0:
            address = recorder.recording.modules[calls[current].module].addresses[0]
            where = ("call", (address, self._passes[current]), name)
        self._seen[where] += 1
        return (*where, self._seen[where])

    def release(self) -> None:
        """Let go of the run."""
        self._recorder = None


def needs_gradient(tensor: torch.Tensor) -> bool:
    """Whether a new value has to be another tensor: autograd may have saved what a call wrote in place."""
    return tensor.requires_grad and torch.is_grad_enabled()


def _made_inside(recorder: Recorder, call: ModuleCall, tensor: Any) -> bool:
    record = recorder.sources.peek(tensor)
    return record is not None and record.source == "op" and record.index >= call.first_op


def addresses_text(recorder: Recorder, call: ModuleCall) -> str:
    """Name of a module for messages."""
    module = recorder.recording.modules[call.module]
    return f"module {module.addresses[0] or module.class_name!r}"


def unmatched(one: Wanted, recording: Recording) -> InterventionError:
    """The error for a live edit that hit nothing."""
    return InterventionError(
        f"The edit {one.action} at {one.site} hit no op of this run of {recording.name}.",
        code="edit_site_no_match",
        remedy="The trace at .trace lists what ran.",
    )
