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
    from torchlens.analysis.repeats import Repeat
    from torchlens.trace.trace import Trace


class Focus(NamedTuple):
    """The block to draw, how many equal ones there are, and the first blocks of other kinds."""

    call: Call
    blocks: int
    others: list[Call]


def find_focus(trace: Trace) -> Focus | None:
    """The first repeated block that holds attention, or ``None``."""
    from torchlens.analysis.attention import attention
    from torchlens.analysis.repeats import repeats

    found = repeats(trace)
    chosen: dict[int, Repeat] = {}
    for site in attention(trace):
        around = {call.index for call in _calls_around(site.call)}
        holding = [repeat for repeat in found if any(call.index in around for call in repeat.calls)]
        best = _block(holding)
        if best is not None:
            chosen.setdefault(best.calls[0].index, best)
    if not chosen:
        return None
    first, *rest = sorted(chosen.values(), key=lambda repeat: repeat.calls[0].index)
    others = [repeat.calls[0] for repeat in rest if not _inside(repeat.calls[0], first.calls)]
    return Focus(first.calls[0], len(first.calls), others)


def _block(holding: list[Repeat]) -> Repeat | None:
    """The innermost repeat whose members feed one another, as blocks do and parallel heads do not."""
    chained = [repeat for repeat in holding if repeat.chained] or holding[:1]
    return max(chained, key=lambda r: (len(_calls_around(r.calls[0])), len(r.calls)), default=None)


def _calls_around(call: Call | None) -> list[Call]:
    found = []
    while call is not None:
        found.append(call)
        call = call.parent
    return found


def _inside(call: Call, outer: Sequence[Call]) -> bool:
    indices = {other.index for other in outer}
    return any(around.index in indices for around in _calls_around(call))


def focus_lines(trace: Trace, settings: Settings) -> list[str]:
    """Which block is drawn, and which others there are."""
    focus = find_focus(trace)
    if focus is None or settings.explicit("module"):
        return []
    name, kind = focus.call.label, focus.call.module.class_name
    lines = [f"{name} ({kind}) is the first of {focus.blocks} equal blocks that hold attention."]
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
