"""Edits and selections during the first run: the ``intervene=`` and ``save=`` of ``tl.trace``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchlens.capture.arguments import flat_tensors
from torchlens.capture.log import Keep
from torchlens.capture.modules import modules_of_callable, walk
from torchlens.capture.recorder import Recorder
from torchlens.capture.recording import EditRecord, Recording, records_in
from torchlens.errors import InterventionError, InvalidArgumentError, nearest, short
from torchlens.interventions.actions import as_action
from torchlens.interventions.fork import Edit, as_site, leaves, note_edit
from torchlens.interventions.live import LiveEdits, Wanted, unmatched
from torchlens.interventions.live_op import LiveOp
from torchlens.interventions.sites import InModule, ModuleOutput, Site
from torchlens.trace.trace import Trace

if TYPE_CHECKING:
    from torchlens.trace.op import Op


def live_edits(model: Callable[..., Any], intervene: Any) -> LiveEdits | None:
    """The edits that ``intervene=`` asks for, checked before anything runs."""
    if intervene is None:
        return None
    wanted = []
    for pair in _pairs(intervene):
        site, action = as_site(pair[0]), as_action(pair[1])
        if not site.live and not isinstance(site, ModuleOutput):
            raise InvalidArgumentError(
                f"The site {site} cannot be decided while the model runs for the first time.",
                code="intervene_site_not_live",
                argument="intervene",
                value=site,
                remedy="Use tl.func, tl.in_module, tl.params, tl.where, or tl.module by itself; or trace "
                "first and call trace.fork().do(site, action).",
            )
        check_addresses(model, site, argument="intervene")
        wanted.append(Wanted(site, action))
    return LiveEdits(wanted)


def _pairs(intervene: Any) -> list[tuple[Any, Any]]:
    given = list(intervene) if isinstance(intervene, (list, tuple)) else None
    if given is not None and len(given) == 2 and isinstance(given[0], Site):
        given = [tuple(given)]
    if given is None or any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in given):
        raise InvalidArgumentError(
            f"intervene={short(intervene)} is not understood.",
            code="intervene_invalid",
            argument="intervene",
            value=intervene,
            remedy='Pass a list of (site, action), such as [(tl.func("relu"), tl.zero())].',
        )
    return given


def check_addresses(model: Callable[..., Any], site: Site, *, argument: str) -> None:
    """Refuse a module address that the model does not have."""
    asked = [leaf for leaf in leaves(site) if isinstance(leaf, (InModule, ModuleOutput))]
    if not asked:
        return
    known = [address for address, *_ in walk(modules_of_callable(model))]
    for leaf in asked:
        whole = ModuleOutput(leaf.address)
        if known and not any(whole.names((address,)) for address in known):
            close = nearest(leaf.address, known)
            raise InvalidArgumentError(
                f"{argument}={short(str(site))} names {leaf.address!r}, no module of the model.",
                code=f"{argument}_module_unknown",
                argument=argument,
                value=site,
                remedy=f"Closest: {', '.join(close)}." if close else f"It has {short(known)}.",
            )


def with_edits(trace: Trace, edits: LiveEdits, *, engine: str = "capture") -> Trace:
    """Note in a trace what live edits did; an edit that hit nothing is an error with the trace at it."""
    made: list[Edit] = []
    for one, hits in zip(edits.wanted, edits.hits):
        if not hits:
            error = unmatched(one, trace.recording)
            error.trace = trace  # type: ignore[attr-defined]
            raise error
        ops = {step: trace.recorded_ops(step, step + 1)[0] for step in sorted(hits)}
        labels = tuple(op.label for op in ops.values())
        record = EditRecord(str(one.site), str(one.action), engine, labels)
        note_edit(trace.recording, record, [op.step for op in ops.values()])
        places = tuple((op.step, ("op", step), hits[step]) for step, op in ops.items())
        made.append(Edit(one.site, one.action, places))
    trace.live_edits = made
    return trace


# -- what is kept ------------------------------------------------------------------------------


def keep_of(model: Callable[..., Any], save: Any) -> Keep:
    """What the recorder is to keep for ``save=``."""
    if isinstance(save, bool):
        return save
    if isinstance(save, Site):
        check_addresses(model, save, argument="save")
        return Asking(save.matches) if save.live else True
    return Asking(save)


class Asking:
    """Keeps the ops for which a test holds; ``found`` tells whether it ever did."""

    def __init__(self, test: Callable[[Any], Any]) -> None:
        self.found = False
        self._test = test

    def __call__(self, recorder: Recorder, name: str, args: Any, kwargs: Any, out: Any) -> bool:
        kept = bool(self._test(LiveOp(recorder, name, args, kwargs, flat_tensors(out))))
        self.found = self.found or kept
        return kept


def only_saved(trace: Trace, save: Any, keep: Keep) -> Trace:
    """Drop what a site does not select but only the whole run could tell; refuse one that selects nothing."""
    if not isinstance(save, Site) or keep is False:
        return trace
    kept = [] if isinstance(keep, Asking) else [op for op in trace.ops if _can_keep(op) and save.matches(op)]
    if not kept and not (isinstance(keep, Asking) and keep.found):
        error = InterventionError(
            f"save={save} matches no op of this run.",
            code="save_site_no_match",
            remedy="The trace at .trace lists what ran.",
        )
        error.trace = trace  # type: ignore[attr-defined]
        raise error
    if not isinstance(keep, Asking):
        _drop(trace.recording, {trace.call_index(op) for op in kept if op.kind == "call"})
    return trace


def _can_keep(op: Op) -> bool:
    return op.kind in ("call", "input", "buffer")


def _drop(recording: Recording, kept: set[int]) -> None:
    """Let go of the values of all calls but those."""
    for call in recording.calls:
        for _, record in records_in((call.outs, call.args, call.kwargs)):
            if record.source == "op" and record.index not in kept and record.kept is not None:
                record.settle_facts()
                record.freeze()
                record.kept, record.history = None, None
