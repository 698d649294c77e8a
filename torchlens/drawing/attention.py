"""The block that shows how a transformer is wired, and the parts of its attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchlens.drawing.fold import Shape, Shown
from torchlens.drawing.marks import Mark
from torchlens.drawing.scene import Row
from torchlens.drawing.settings import Settings
from torchlens.drawing.themes import THEMES
from torchlens.trace.op import Op
from torchlens.trace.parts import Call

if TYPE_CHECKING:
    from torchlens.analysis.attention import AttentionSite
    from torchlens.trace.trace import Trace


class Focus(NamedTuple):
    """The block to draw, how many of its kind there are, and the first blocks of other kinds."""

    call: Call
    blocks: int
    others: list[Call]


def find_focus(trace: Trace) -> Focus | None:
    """The first repeated block that holds attention, or ``None``."""
    from torchlens.analysis.attention import attention

    sites = attention(trace)
    groups = _groups(trace, sites)
    chosen: dict[int, list[Call]] = {}
    for site in sites:
        around = {call.index for call in calls_around(site.call)}
        holding = [group for group in groups if any(call.index in around for call in group)]
        best = _block(holding, sites)
        if best is not None:
            chosen.setdefault(best[0].index, best)
    if not chosen:
        return None
    first, *rest = (chosen[index] for index in sorted(chosen))
    others: dict[int, Call] = {}
    for call in (group[0] for group in rest):
        if call.module is not first[0].module and not _inside(call, first):
            others.setdefault(call.module.index, call)
    return Focus(first[0], len(first), list(others.values()))


def _groups(trace: Trace, sites: list[AttentionSite]) -> list[list[Call]]:
    """Calls that hold attention, feed one another, and repeat: equal inside, or siblings of one class."""
    from torchlens.analysis.repeats import repeats

    holding = {call.index: call for site in sites for call in calls_around(site.call)}
    siblings: dict[tuple[int, str], list[Call]] = {}
    for index in sorted(holding):
        call = holding[index]
        key = (-1 if call.parent is None else call.parent.index, call.module.class_name)
        siblings.setdefault(key, []).append(call)
    groups = [group for group in siblings.values() if len(group) > 1 and _feeds(group[0], group[1])]
    return groups + [list(repeat.calls) for repeat in repeats(trace) if repeat.chained]


def _block(holding: list[list[Call]], sites: list[AttentionSite]) -> list[Call] | None:
    """The innermost group, of those that do more than attention if there are any."""
    whole = [group for group in holding if _computes_on(group[0], sites)]
    return max(whole or holding, key=lambda group: (len(calls_around(group[0])), len(group)), default=None)


def _computes_on(call: Call, sites: list[AttentionSite]) -> bool:
    """Whether weights beyond one projection follow the last attention inside a call."""
    inside = {op.step for op in call.ops}
    last = max((site.output.step for site in sites if site.output.step in inside), default=-1)
    after = [op for op in call.ops if op.step > last and any(len(p.shape) > 1 for p in op.params)]
    return last >= 0 and len(after) > 1


def calls_around(call: Call | None) -> list[Call]:
    """A call and those around it, innermost first."""
    found = []
    while call is not None:
        found.append(call)
        call = call.parent
    return found


def _inside(call: Call, outer: Sequence[Call]) -> bool:
    indices = {other.index for other in outer}
    return any(around.index in indices for around in calls_around(call))


def _feeds(first: Call, second: Call) -> bool:
    """Whether something that ``first`` computes reaches ``second``."""
    ops, later = first.ops, second.ops
    if not ops or not later:
        return False
    reached = {op.step for op in ops}
    for op in first._trace.ops[ops[-1].step + 1 : later[-1].step + 1]:
        if any(edge.parent.step in reached for edge in op.inputs):
            if op.step >= later[0].step:
                return True
            reached.add(op.step)
    return False


def focus_lines(trace: Trace, settings: Settings) -> list[str]:
    """Which block is drawn, and which others there are."""
    focus = find_focus(trace)
    if focus is None or settings.explicit("module"):
        return []
    name, kind = focus.call.label, focus.call.module.class_name
    lines = [f"{name} ({kind}) is the first of {focus.blocks} such blocks that hold attention."]
    if focus.others:
        names = ", ".join(call.label for call in focus.others[:4])
        more = f" and {len(focus.others) - 4} more" if len(focus.others) > 4 else ""
        lines.append(f"Other blocks that hold attention: {names}{more}.")
    return lines


# -- roles -------------------------------------------------------------------------------------


def role_marks(shape: Shape, settings: Settings) -> tuple[dict[Shown, Mark], dict[tuple[int, str], str]]:
    """Marks of the nodes that play a part in attention, and heads of edges for fused attention."""
    from torchlens.analysis.attention import attention

    of_op: dict[int, list[str]] = {}
    heads: dict[tuple[int, str], str] = {}
    for site in attention(shape.graph.trace):
        for part, role in site.roles.items():
            if isinstance(part, Op):
                of_op.setdefault(part.step, []).append(role)
            else:
                heads[part.child.step, repr(part.path)] = role
    return {
        node: _mark(names, settings)
        for node in shape.nodes
        if node.kind == "unit" and not node.stub
        if (names := list(dict.fromkeys(r for op in node.unit.ops for r in of_op.get(op.step, ()))))
    }, heads


def _mark(names: list[str], settings: Settings) -> Mark:
    theme = THEMES[settings["theme"]]
    look = {"stroke": theme.ink, "stroke_width": 2.0 * theme.node_width}
    return Mark(look, [Row(f"attention {' and '.join(names)}", "note")])
