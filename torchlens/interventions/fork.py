"""Forks: traces that share every value with their parent until an edit changes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import ref

from torchlens.capture.recording import EditRecord, Recording, records_in
from torchlens.errors import InterventionError, InvalidArgumentError, short
from torchlens.interventions.actions import Action, as_action
from torchlens.interventions.apply import chosen_outputs
from torchlens.interventions.memory import Key
from torchlens.interventions.replay import Hit, replay
from torchlens.interventions.rewrite import shared
from torchlens.interventions.sites import Label, ModuleOutput, Site
from torchlens.trace.op import Layer, Op
from torchlens.trace.parts import Module
from torchlens.trace.trace import Trace

EDITABLE = ("call", "input", "buffer", "constant")


@dataclass(frozen=True)
class Edit:
    """One edit of a fork: its site and action, and what it hit when it was made."""

    site: Site
    action: Action
    places: tuple[tuple[int, Key, tuple[int, ...]], ...]
    """Step in the trace, source, and outputs of each op."""


class Fork(Trace):
    """A trace with edits of its own; made by :meth:`torchlens.Trace.fork`.

    It shares values with the trace it came from until an edit changes them, and refers to that trace
    weakly: a parent may be dropped.  Ops read before an edit keep showing the values of then.
    """

    def __init__(self, parent: Trace, *, name: str | None = None) -> None:
        super().__init__(shared(parent.recording, name=name))
        self._parent = ref(parent)
        self._like: Recording | None = parent.recording
        self.live_edits = list(parent.live_edits)

    @property
    def parent(self) -> Trace | None:
        return self._parent()

    def do(self, site: Any, action: Any) -> Fork:
        """Make an edit, and recompute what depends on it from kept values.

        Everything else stays as recorded, the draws of random numbers included.  An op that writes in
        place is edited in place: whoever reads that memory afterwards sees the edit.

        Parameters
        ----------
        site : Site
            Such as ``tl.label("relu_1_2")`` or ``tl.func("relu") & tl.in_module("layer2")``.
        action : Action or callable
            Such as ``tl.zero()``, or ``f(value, op) -> value``.

        Returns
        -------
        Fork
            This fork.

        Raises
        ------
        InterventionError
            If the site matches nothing, a value is not there, the new one does not fit, or an op cannot
            be run again.  The fork is then as it was.
        """
        chosen, change = as_site(site), as_action(action)
        self._check()
        like = self._built()
        hits = [Hit(op, key_of_op(like, op), outputs, change) for op, outputs in matching(like, chosen)]
        made = replay(
            self.recording,
            hits=hits,
            earlier=self._earlier(),
            forgotten=self._forgotten(),
            label=self._label,
        )
        places = tuple((hit.op.step, hit.key, hit.outputs) for hit in hits)
        labels = tuple(hit.op.label for hit in hits)
        note_edit(made, EditRecord(str(chosen), str(change), "replay", labels), [p[0] for p in places])
        self.live_edits.append(Edit(chosen, change, places))
        self._become(made)
        return self

    def rerun(self, model: Callable[..., Any], inputs: Any = (), keywords: Any = None) -> Fork:
        """Run the model again with this fork's edits made live; other inputs are allowed.

        Each edit is made where the ops that it hit stand now: the same call, by order, of the same
        function inside the same module call.

        Parameters
        ----------
        model : callable
            The model, or another of the same structure.
        inputs, keywords : object
            As for :func:`torchlens.trace`.

        Returns
        -------
        Fork
            This fork, with the values of that run.
        """
        from torchlens.interventions.rerun import rerun

        self._check()
        self._forgotten(refuse=True)
        trace, self.live_edits = rerun(self, model, inputs, keywords)
        self._become(trace.recording)
        return self

    # -- inside --------------------------------------------------------------------------------

    def _become(self, recording: Recording) -> None:
        """Take another recording; everything built from the old one is built again when asked for."""
        kept = {"_parent": self._parent, "live_edits": self.live_edits, "_like": None}
        self.__dict__.clear()
        self.__dict__.update(kept, recording=recording)

    def _check(self) -> None:
        if self.recording.fake:
            raise InterventionError(
                "This trace was made with fake=True and has no values to edit.",
                code="edit_trace_fake",
                remedy="Trace the model with real tensors.",
            )

    def _built(self) -> Trace:
        """A trace with this one's ops: the parent itself as long as both are the same."""
        parent = self.parent
        if parent is None or self._like is not parent.recording:
            return self
        self.recording.layers = parent.recording.layers if parent.ops else None
        return parent

    def _label(self, step: int) -> str:
        return self._built().recorded_ops(step, step + 1)[0].label

    def _forgotten(self, *, refuse: bool = False) -> set[int]:
        """Calls with edits that only the record knows, so that they cannot be made again."""
        known = len(self.live_edits)
        if refuse and len(self.edits) > known:
            lost = self.edits[known]
            raise InterventionError(
                f"The edit {lost.action} at {lost.site} is known from its record only.",
                code="edit_action_unknown",
                remedy="Fork the trace of the clean run and make the edit again.",
            )
        labels = {label for edit in self.edits[known:] for label in edit.labels}
        return (
            {i for i, step in enumerate(self.call_steps) if self.ops[step].label in labels}
            if labels
            else set()
        )

    def _earlier(self) -> list[Hit]:
        ops = self._built().ops if self.live_edits else []
        return [
            Hit(ops[step], key, outputs, edit.action)
            for edit in self.live_edits
            for step, key, outputs in edit.places
        ]


def matching(trace: Trace, site: Site) -> list[tuple[Op, tuple[int, ...]]]:
    """The ops of a site and which of their outputs it means."""
    ops = _by_name(trace, site) or trace.ops
    found = [op for op in ops if op.kind in EDITABLE and not op.failed and site.matches(op)]
    if not found:
        raise no_match(site, trace)
    return [(op, chosen_outputs(len(op.records), site.outputs(op), op.label)) for op in found]


def _by_name(trace: Trace, site: Site) -> list[Op]:
    """The ops of a site that is one label or one module, looked up."""
    if isinstance(site, Label) and site.name in trace:
        part = trace[site.name]
        return part.ops if isinstance(part, Layer) else [part] if isinstance(part, Op) else []
    if isinstance(site, ModuleOutput) and site.address in trace:
        part = trace[site.address]
        return _returned(trace, part) if isinstance(part, Module) else []
    return []


def _returned(trace: Trace, module: Module) -> list[Op]:
    """The ops whose results the calls of a module return, in execution order."""
    steps: set[int] = set()
    for record in (trace.recording.module_calls[call.index] for call in module.calls):
        made = (r.index for _, r in records_in(record.output) if r.source == "op")
        steps.update(step for step in made if record.first_op <= step < record.end_op)
    return [trace.recorded_ops(step, step + 1)[0] for step in sorted(steps)]


def as_site(site: Any) -> Site:
    """Refuse what is no site."""
    if isinstance(site, Site):
        return site
    raise InvalidArgumentError(
        f"site={short(site)} is not a site.",
        code="site_invalid",
        argument="site",
        value=site,
        remedy='Pass tl.label("relu_1_2"), tl.func("relu"), tl.module("layer1") or tl.where(f).',
    )


def key_of_op(trace: Trace, op: Op) -> Key:
    """Source and index of what an op makes."""
    return ("op", trace.call_index(op)) if op.kind == "call" else (op.kind, op.records[0].index)


def note_edit(recording: Recording, record: EditRecord, steps: list[int]) -> None:
    """Add an edit and the ops that confirm it to a recording."""
    recording.edited[len(recording.edits)] = steps
    recording.edits.append(record)


def no_match(site: Site, trace: Trace) -> InterventionError:
    """The error for a site without ops, with the nearest names."""
    from torchlens.errors import nearest

    names = [str(getattr(part, "name", "") or getattr(part, "address", "")) for part in leaves(site)]
    known = [*(layer.label for layer in trace.layers), *(a for m in trace.modules for a in m.addresses)]
    known += sorted({op.func_name for op in trace.ops})
    close = list(dict.fromkeys(hint for name in names for hint in nearest(name, known) if name))
    outputs = [name for name in names if name.startswith("output_") and name in known]
    hint = f"Closest: {', '.join(close)}." if close else "print(trace) lists all ops."
    if outputs:
        hint = f"Edit the op that makes {outputs[0]}: {trace[outputs[0]].parents[0].label}."
    return InterventionError(f"The site {site} matches no op.", code="edit_site_no_match", remedy=hint)


def leaves(site: Site) -> list[Site]:
    """The sites that a site is joined from."""
    parts = site.parts()
    return [leaf for part in parts for leaf in leaves(part)] if parts else [site]


def attach(trace: Trace, records: list[EditRecord]) -> Trace:
    """A fork that carries edits known only from a record, each of them inferred."""
    fork = trace.fork()
    for record in records:
        fork.recording.edits.append(dataclasses.replace(record, inferred=True))
    return fork
