"""What interventions changed: marks on the drawing, and what the caption says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchlens.drawing.fold import Shape, Shown
from torchlens.drawing.marks import Mark
from torchlens.drawing.rows import counted
from torchlens.drawing.scene import Row
from torchlens.drawing.settings import Settings
from torchlens.drawing.themes import THEMES
from torchlens.interventions.changes import changes

if TYPE_CHECKING:
    from torchlens.capture.recording import EditRecord
    from torchlens.trace.trace import Trace


def change_marks(shape: Shape, settings: Settings) -> dict[Shown, Mark]:
    """Purple outlines for edited nodes, light purple ones with their largest change for the others."""
    found = changes(shape.graph.trace)
    theme = THEMES[settings["theme"]]
    marks: dict[Shown, Mark] = {}
    for node in shape.nodes:
        steps = [op.step for unit in node.units for op in unit.ops]
        edited = [found.edited[step] for step in steps if step in found.edited]
        moved = [found.changed[step] for step in steps if step in found.changed]
        if node.stub or not (edited or moved):
            continue
        role = theme.roles["edited" if edited else "changed"]
        look: dict[str, Any] = {"stroke": role.stroke, "stroke_width": role.width * theme.node_width}
        if edited:
            look["dashed"] = all(edited)
        text = (
            "edited" + (", inferred" if all(edited) else "")
            if edited
            else f"changed by up to {max(moved):.3g}"
        )
        kind = ("inferred" if all(edited) else "edited") if edited else "changed"
        marks[node] = Mark(look, [Row(text, "note")], kind)
    return marks


def caption_lines(trace: Trace) -> list[str]:
    """How many ops were edited and changed, or why that is not known."""
    found = changes(trace)
    lines = []
    if trace.edits:
        lines.append(f"Edited: {counted(len(found.edited), 'op')} by {_edits(trace.edits)}.")
    if any(found.edited.values()):
        lines.append("Dashed outlines are inferred from the record, not confirmed by an op.")
    if found.unclear:
        return [*lines, found.unclear]
    clean = "other trace" if trace.compares_inputs else "clean run"
    values = "other values" if trace.edits else "values"
    lines.append(f"Changed: {len(found.changed)} of {found.compared} {values} differ from the {clean}.")
    if found.unknown:
        lines.append(f"{counted(len(found.unknown), 'value')} not compared: not kept in both runs.")
    return lines


def _edits(edits: Sequence[EditRecord]) -> str:
    shown = [f"{edit.action} at {edit.site}" for edit in edits[:3]]
    more = f" and {len(edits) - 3} more" if len(edits) > 3 else ""
    return ", ".join(shown) + more
