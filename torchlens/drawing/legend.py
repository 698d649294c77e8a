"""The legend: what colours, outlines and motifs of a drawing mean."""

from __future__ import annotations

from torchlens.drawing.fold import Shape
from torchlens.drawing.marks import NONFINITE, role_of
from torchlens.drawing.overlay import Layers
from torchlens.drawing.scene import Legend, LegendEntry, LegendRamp
from torchlens.drawing.settings import Settings
from torchlens.drawing.themes import THEMES

_ROLES = {
    "input": "input",
    "output": "output",
    "trainable": "trainable weights",
    "frozen": "frozen weights",
    "mixed": "trainable and frozen weights",
    "buffer": "buffer",
    "constant": "constant",
    "branch": "branch test",
    "opaque": "inside not seen",
    "failed": "raised an exception",
    "stub": "outside of the part drawn",
}


_CHANGES = {
    "edited": ("edited", "edited"),
    "inferred": ("edited", "edited, inferred"),
    "changed": ("changed", "differs from the clean run"),
}
"""Marks of interventions: role of the outline, and what it says."""


def legend_of(shape: Shape, layers: Layers, settings: Settings) -> Legend | None:
    """The legend, if one is wanted and there is something to explain."""
    wanted = settings["show_legend"]
    if wanted is None:
        wanted = layers.color is not None or layers.size is not None
    if not wanted:
        return None
    theme = THEMES[settings["theme"]]
    entries = [] if layers.color is not None else _role_entries(shape, settings)
    if layers.color is not None:
        entries = [entry for entry in _role_entries(shape, settings) if entry.text in ("input", "output")]
    if layers.color is not None and any(node.kind != "unit" and not node.stub for node in shape.nodes):
        neutral = theme.roles["aggregate"]
        entries.append(LegendEntry("aggregate, not encoded", neutral.fill, neutral.stroke))
    for name, (role, text) in _CHANGES.items():
        if name in layers.marks_used:
            look = theme.roles[role]
            entries.append(LegendEntry(text, theme.node_fill, look.stroke, name == "inferred"))
    for text, motif in NONFINITE.values():
        if motif in layers.marks_used:
            entries.append(LegendEntry(text, theme.node_fill, theme.node_stroke, motif=motif))
    return Legend(tuple(entries), tuple(_ramps(layers, theme.ramp)))


def _role_entries(shape: Shape, settings: Settings) -> list[LegendEntry]:
    theme = THEMES[settings["theme"]]
    used = {role_of(node) for node in shape.nodes}
    return [
        LegendEntry(text, theme.roles[role].fill, theme.roles[role].stroke, theme.roles[role].dashed)
        for role, text in _ROLES.items()
        if role in used
    ]


def _ramps(layers: Layers, colors: tuple[str, ...]) -> list[LegendRamp]:
    found = []
    if layers.color is not None and layers.color.positions:
        how = "rank" if layers.color.scale == "rank" else f"{layers.color.scale} scale"
        found.append(LegendRamp(f"{layers.color.channel.title} ({how})", colors, *layers.color.summary()))
    return found
