"""Replay: run again what depends on an edit, from kept values, and write a new recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from torchlens._collector import rare_collections
from torchlens._torch_compat import any_autocast_enabled, no_torch_function, version_of
from torchlens.capture.arguments import SCALARS, filled, flat_tensors
from torchlens.capture.context import given_generators, restored
from torchlens.capture.facts import facts_of
from torchlens.capture.recording import CallRecord, ReadRecord, Recording, TensorRecord
from torchlens.capture.state import RandomState
from torchlens.capture.values import ValueStore, read
from torchlens.capture.writers import RESHAPING, Target
from torchlens.capture.writing import written_region
from torchlens.errors import InterventionError
from torchlens.interventions.actions import Action
from torchlens.interventions.affected import affected_by
from torchlens.interventions.apply import changed, write_back, written_to
from torchlens.interventions.copies import Copies, cloned, equal, with_generators
from torchlens.interventions.memory import Key, Memory, Restated, key_of, mapped, plan_of, targets_of
from torchlens.interventions.rewrite import rewritten
from torchlens.storage.opaque import holds_opaque

if TYPE_CHECKING:
    from torchlens.trace.op import Op

RERUN = "Run the model again with fork.rerun(model, x)."
SAVE = "Trace again with save=True, or with a save= that covers it."


@dataclass(frozen=True)
class Hit:
    """One op that an edit is about, and which of its outputs."""

    op: Op
    key: Key
    outputs: tuple[int, ...]
    action: Action


def replay(
    recording: Recording,
    *,
    hits: list[Hit],
    earlier: list[Hit],
    forgotten: set[int],
    label: Callable[[int], str],
) -> Recording:
    """A new recording in which ``hits`` are made; ``earlier`` edits are made again where recomputed.

    Parameters
    ----------
    recording : Recording
        Left untouched.
    hits, earlier : list of Hit
    forgotten : set of int
        Calls with edits that cannot be made again.
    label : callable
        Names the op of a call for messages.
    """
    return _Replay(recording, hits, earlier, label).run(forgotten)


class _Replay:
    """The steps of one replay.

    ``now`` holds the tensors of this replay by the record they stand in for, ``new`` the records of
    those that changed.
    """

    def __init__(
        self, recording: Recording, hits: list[Hit], earlier: list[Hit], label: Callable[[int], str]
    ) -> None:
        self.recording = recording
        self.calls = recording.calls
        self.label = label
        self.hits = {hit.key: hit for hit in hits}
        self.earlier: dict[Key, list[Hit]] = {}
        for hit in earlier:
            self.earlier.setdefault(hit.key, []).append(hit)
        self.memory = Memory(recording)
        self.work = affected_by(self.memory, self.hits)
        self.running = set(self.work.run)
        self.casting = any_autocast_enabled()
        self.copies = Copies()
        self.now: dict[int, torch.Tensor] = {}
        self.new: dict[int, TensorRecord] = {}
        self.given: dict[int, torch.Tensor] = {}
        self.done: dict[int, CallRecord] = {}
        self.records: list[TensorRecord] = []
        self.values = ValueStore(self.records)
        self.ready: dict[tuple[Key, int], torch.Tensor] = {}
        self.reads = [item for item in recording.reads if key_of(item.tensor) in self.work.changed]

    def run(self, forgotten: set[int]) -> Recording:
        """Check what can be checked, then recompute."""
        self._check(forgotten)
        random = RandomState() if any(step in self.recording.contexts for step in self.work.run) else None
        try:
            with no_torch_function(), torch.no_grad(), rare_collections():
                self._prepare()
                self._sources()
                special = self._special()
                for step in sorted(self.running | {index for kind, index in self.hits if kind == "op"}):
                    if self.reads:
                        self._reads(step)
                    if step in special or not self._plainly(step):
                        self._step(step)
                self._reads(len(self.calls))
                self.values.seal()
        finally:
            if random is not None:
                random.restore()
        return rewritten(
            self.recording,
            memory=self.memory,
            new=self.new,
            changed=self.work.changed,
            calls=self.done,
            outputs=self._outputs(),
        )

    # -- before anything is recomputed ---------------------------------------------------------

    def _check(self, forgotten: set[int]) -> None:
        for step in self.work.run:
            if step in forgotten and step not in self.work.bases:
                self._refuse(
                    step, "carries an edit that is known from its record only", "edit_action_unknown"
                )
            if step not in self.work.bases and not callable(self.calls[step].func):
                self._refuse(
                    step, "is opaque or comes from a file, what it computes is not at hand", "edit_op_opaque"
                )
            if self.recording.derived is not None and step not in self.work.bases:
                self._check_loaded(step)

    def _check_loaded(self, step: int) -> None:
        call = self.calls[step]
        if holds_opaque(call.args) or holds_opaque(call.kwargs):
            self._refuse(step, "was given an object that the file has only as text", "edit_argument_unknown")

    def _prepare(self) -> None:
        """Make the edits whose values are at hand, so that a wrong one fails before any work."""
        for key, hit in self.hits.items():
            again = key[0] == "op" and key[1] in self.running
            if again and hit.action.foreign:
                continue
            for output in hit.outputs:
                value = read(hit.op.records[output])
                if value is None and not again:
                    self._absent(hit.op.records[output], hit.op.label)
                if value is not None:
                    self.ready[key, output] = changed(value, hit.action, hit.op, output, hit.op.label)

    def _refuse(self, step: int, problem: str, code: str) -> NoReturn:
        label = self.label(step)
        raise InterventionError(
            f"{label} cannot be replayed: it {problem}.", code=code, op=label, remedy=RERUN
        )

    def _absent(self, record: TensorRecord, reader: str) -> NoReturn:
        name = self._name(record)
        problem = "was not kept" if record.lost is None else f"is lost ({record.lost})"
        raise InterventionError(
            f"The value of {name} {problem}, and the edit needs it for {reader}.",
            code="edit_value_missing",
            op=name,
            remedy=SAVE if record.lost is None else RERUN,
        )

    def _name(self, record: TensorRecord) -> str:
        if record.source == "op":
            return self.label(record.index)
        if record.source in ("param", "buffer"):
            items: Any = self.recording.params if record.source == "param" else self.recording.buffers
            return str(items[record.index].addresses[0])
        return f"{record.source}_{record.index + 1}"

    # -- values --------------------------------------------------------------------------------

    def _sources(self) -> None:
        """Edited sources get their new value, sources on live memory a copy of their own."""
        for key in [key for key in self.hits if key[0] != "op"]:
            for record in self.memory.of(key):
                self.now[id(record)] = self._edited(key, 0, self._known(record, "its edit"), again=False)
                self._keep(record, self.now[id(record)])
        for record in self.memory.sources if self.work.live else ():
            group = self.memory.group(record)
            if group in self.work.live and id(record) not in self.now:
                value = self._known(record, "memory that is written")
                own = isinstance(record, Restated)
                self.now[id(record)] = self.copies.of(record, value, None if own else group)

    def _known(self, record: TensorRecord, reader: str | int) -> torch.Tensor:
        """The kept value of a record; ``reader`` is what needs it, or the step of a call."""
        kept = record.kept
        if kept is not None and record.history is None and version_of(kept) == record.version is not None:
            return kept.detach() if kept.requires_grad else kept
        value = read(record)
        if value is None:
            self._absent(record, self.label(reader) if isinstance(reader, int) else reader)
        return value

    def _value(self, record: TensorRecord, step: int) -> torch.Tensor:
        """The tensor that an argument record stands for in this replay."""
        same = self.memory.same(record)
        if self.memory.unseen(record) and key_of(record) in self.work.changed:
            problem = f"reads what was made from {self._name(record)} where no recorded call was seen"
            self._refuse(step, problem, "edit_path_unseen")
        found = self.now.get(id(same))
        if found is None:
            return self._known(record, step)
        if record is not same and ("op", step) in self.work.changed:
            self._keep(record, found)
        return found

    def _keep(self, record: TensorRecord, tensor: torch.Tensor) -> None:
        made = Restated(record, version_of(tensor), place=self.memory.writes)
        if record.kept is not None:
            made.kept = tensor.detach()
        else:
            made.facts = facts_of(tensor)
        self.new[id(record)] = made
        self.records.append(made)

    def _edited(self, key: Key, slot: int, value: torch.Tensor, *, again: bool) -> torch.Tensor:
        """A value with the edits of its op; the earlier ones are in it unless it was computed again."""
        for hit in self.earlier.get(key, ()) if again else ():
            if slot in hit.outputs:
                value = changed(value, hit.action, hit.op, slot, hit.op.label)
        hit = self.hits.get(key)  # type: ignore[assignment]
        if hit is None or slot not in hit.outputs:
            return value
        ready = None if again else self.ready.get((key, slot))
        return ready if ready is not None else changed(value, hit.action, hit.op, slot, hit.op.label)

    # -- running -------------------------------------------------------------------------------

    def _special(self) -> set[int]:
        """Steps that are edited, draw numbers, are cast, or may share memory that is written."""
        if self.memory.writes or self.casting:
            return set(range(len(self.calls)))
        edited = {step for kind, step in (*self.hits, *self.earlier) if kind == "op"}
        return edited | set(self.recording.contexts)

    def _plainly(self, step: int) -> bool:
        """Run a call that nothing special is about, in one body: of small ops this is most of the cost."""
        call = self.calls[step]
        plan = plan_of(call)
        if plan.watched or plan.writer is not None or len(call.outs) != 1:
            return False
        now, new, given = self.now, self.new, self.given
        args: list[Any] = []
        held: list[Any] = []
        for value in call.args:
            if isinstance(value, TensorRecord):
                found = now.get(id(value))
                if found is None:
                    found = given.get(id(value))
                    if found is None:
                        found = given[id(value)] = self._value(value, step)
                args.append(found)
                held.append(new.get(id(value), value))
            elif value.__class__ in SCALARS:
                args.append(value)
                held.append(value)
            else:
                args.append(filled(value, lambda record: self._value(record, step)))
                held.append(filled(value, lambda record: new.get(id(record), record)))
        kwargs = filled(call.kwargs, lambda record: self._value(record, step)) if call.kwargs else call.kwargs
        try:
            out = call.func(*args, **kwargs)
        except Exception as error:
            self._explain(error, step)
            raise
        if out.__class__ is not torch.Tensor:
            self._settle(step, list(call.outs), self._outs(step, call, out, []))
            return True
        record = call.outs[0]
        made = TensorRecord("op", step, record.slot, None, None, version_of(out))
        if record.kept is not None:
            made.kept = out
        else:
            made.facts = facts_of(out)
        now[id(record)], new[id(record)] = out, made
        if call.out is record and not call.kwargs:
            self.done[step] = CallRecord(
                call.func, call.name, tuple(held), call.kwargs, made, (made,), *call[6:]
            )
        return True

    def _step(self, step: int) -> None:
        """Bring the results of one call up to date."""
        call = self.calls[step]
        if step not in self.running:
            hit = self.hits["op", step]
            pairs = [(call.outs[slot], slot) for slot in hit.outputs]
            tensors = [
                self._edited(("op", step), i, self._known(r, hit.op.label), again=False) for r, i in pairs
            ]
            self._settle(step, [record for record, _ in pairs], tensors)
        elif step in self.work.bases:
            own = [self.copies.of(r, self._known(r, step), None) for r in call.outs]
            tensors = [self._edited(("op", step), i, tensor, again=False) for i, tensor in enumerate(own)]
            self._settle(step, list(call.outs), tensors)
        else:
            tensors, targets = self._call(step, call)
            if ("op", step) in self.hits or ("op", step) in self.earlier:
                tensors = [self._edit_output(step, i, tensor, targets) for i, tensor in enumerate(tensors)]
            self._settle(step, list(call.outs), tensors)

    def _call(self, step: int, call: CallRecord) -> tuple[list[torch.Tensor], list[Target]]:
        """Run one call on the values of this replay; its output tensors and what it wrote."""

        def give(record: TensorRecord) -> torch.Tensor:
            return self._value(record, step)

        args = mapped(call.args, give)
        kwargs = dict(filled(call.kwargs, give)) if call.kwargs else {}
        context = self.recording.contexts.get(step)
        if context is not None and context.generated:
            args, kwargs = with_generators(args, kwargs, given_generators(context))
        if call.name in RESHAPING:
            args = self._apart(step, call, args)
        if plan_of(call).watched:
            args, kwargs = cloned(args), cloned(kwargs)
        targets = list(targets_of(call, args, kwargs)) if call.mutates else []
        for target in targets:
            self.values.before_write(target.tensor, target.index, written_region(target))
        try:
            if context is None and not self.casting:
                out = call.func(*args, **kwargs)
            else:
                with restored(context):
                    out = call.func(*args, **kwargs)
        except Exception as error:
            self._explain(error, step)
            raise
        return self._outs(step, call, out, targets), targets

    def _outs(self, step: int, call: CallRecord, out: Any, targets: list[Target]) -> list[torch.Tensor]:
        """The output tensors of a call: what it returned, or what it wrote."""
        tensors = flat_tensors(out) or [target.tensor for target in targets]
        if len(tensors) != len(call.outs):
            problem = f"returned {len(tensors)} tensors where it returned {len(call.outs)}"
            self._refuse(step, problem, "edit_outputs_differ")
        return tensors

    def _explain(self, error: Exception, step: int) -> None:
        if hasattr(error, "add_note"):
            error.add_note(f"torchlens: raised when {self.label(step)} was replayed; nothing is changed")

    def _apart(self, step: int, call: CallRecord, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments whose first is another object, since the call changes the shape of the object."""
        if call.name in ("set_", "resize_", "resize_as_"):
            self._refuse(step, "moves a tensor to other memory", "edit_memory_moved")
        return (args[0].detach(), *args[1:])

    def _edit_output(self, step: int, slot: int, tensor: torch.Tensor, targets: list[Target]) -> torch.Tensor:
        new = self._edited(("op", step), slot, tensor, again=True)
        target = written_to(tensor, targets)
        if new is tensor or target is None:
            return new
        write_back(target, new, self.values)
        return tensor

    def _settle(self, step: int, records: list[TensorRecord], tensors: list[torch.Tensor]) -> None:
        """Take in the results of a call, and keep them if they changed."""
        pairs = list(zip(records, tensors))
        for late, argument in self.memory.late.get(step, ()):
            written = self.now.get(id(self.memory.same(argument)))
            if written is not None:
                pairs.append((late, written))
        for record, tensor in pairs:
            self.now[id(record)] = tensor
            if ("op", step) in self.work.changed:
                self._keep(record, tensor)

    # -- what left the graph -------------------------------------------------------------------

    def _reads(self, step: int) -> None:
        """Refuse where Python read a value that is another one now: its path may have been another."""
        while self.reads and self.reads[0].before_op <= step:
            self._check_read(self.reads.pop(0))

    def _check_read(self, item: ReadRecord) -> None:
        found, before = self.now.get(id(self.memory.same(item.tensor))), read(item.tensor)
        if found is None or (before is not None and equal(found, before)):
            return
        if item.kind == "__bool__" and found.numel() == 1 and bool(found) == item.outcome:
            return
        label = self._name(item.tensor)
        raise InterventionError(
            f"The model read {label} into Python ({item.kind.strip('_')}), and the edit changes its value, "
            "so that what came after may differ in ways that a replay cannot follow.",
            code="edit_read_by_python",
            op=label,
            remedy=RERUN,
        )

    def _outputs(self) -> list[torch.Tensor | None]:
        """The tensors that the model returns now; ``None`` where as before."""
        found: list[torch.Tensor | None] = []
        for item in self.recording.outputs:
            sources = {key_of(item.record), *(key_of(record) for _, record, _ in item.writes_seen)}
            tensor = self.now.get(id(self.memory.same(item.record)))
            found.append(tensor if sources & self.work.changed else None)
        return found
