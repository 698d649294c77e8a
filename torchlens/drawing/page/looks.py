"""Colours by what they mean, so that the page can change its theme.

Pictures are assembled in one theme; :class:`Looks` turns its colours back into roles, steps of the ramp
and plain parts.  A colour that means nothing in the theme, as a user's own, stays as it is.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from torchlens.drawing.scene import Legend, LegendEntry, SceneNode
from torchlens.drawing.themes import THEMES, Theme

BASE = next(iter(THEMES))
"""The theme that everything is assembled in."""


def themes() -> dict[str, dict[str, Any]]:
    """Every theme as plain data."""
    return {name: _theme(theme) for name, theme in THEMES.items()}


def _theme(theme: Theme) -> dict[str, Any]:
    data = {name: getattr(theme, name) for name in _FIELDS}
    data["roles"] = {name: asdict(role) for name, role in theme.roles.items()}
    data["rows"] = {kind: asdict(style) for kind, style in theme.rows.items()}
    return data


_FIELDS = (
    "background",
    "ink",
    "muted",
    "edge",
    "back_edge",
    "node_fill",
    "node_stroke",
    "box_fills",
    "box_stroke",
    "box_ink",
    "ramp",
    "inks",
    "edge_width",
    "node_width",
    "box_width",
    "label_size",
)


class Looks:
    """The table of looks; a node's look is its number there."""

    def __init__(self) -> None:
        self.theme = THEMES[BASE]
        self.table: dict[tuple[Any, ...], int] = {}
        roles = list(reversed(list(self.theme.roles.items())))
        self._pairs = {(role.fill, role.stroke): name for name, role in roles}
        self._fills = {role.fill: name for name, role in roles}
        self._strokes = {role.stroke: name for name, role in roles}
        self._steps = {color: step for step, color in enumerate(self.theme.ramp)}

    def number(self, node: SceneNode) -> int:
        """Number of a node's look: fill, stroke, width, dashes, shape, motif."""
        fill, stroke = self.fill(node.fill, node.stroke), self.stroke(node.stroke, node.fill)
        width = round(node.stroke_width / self.theme.node_width, 2)
        look = fill, stroke, width, int(node.dashed), node.shape, node.motif
        return self.table.setdefault(look, len(self.table))

    def fill(self, fill: str, stroke: str | None) -> str:
        """``role``, ``@step`` of the ramp, ``node``, or a colour."""
        if fill in self._steps:
            return f"@{self._steps[fill]}"
        role = self._pairs.get((fill, stroke or ""))
        if role is not None:
            return role
        if fill == self.theme.node_fill:
            return "node"
        return self._fills.get(fill, fill)

    def stroke(self, stroke: str, fill: str) -> str:
        """``role``, ``node``, ``ink``, or a colour."""
        role = self._pairs.get((fill, stroke))
        if role is not None:
            return role
        known = {self.theme.node_stroke: "node", self.theme.ink: "ink"}
        return known.get(stroke) or self._strokes.get(stroke, stroke)

    def legend(self, legend: Legend | None) -> dict[str, Any] | None:
        """A legend with meanings in place of colours."""
        if legend is None:
            return None
        ramps = [[r.title, r.minimum, r.median, r.maximum] for r in legend.ramps]
        return {"entries": [self._entry(entry) for entry in legend.entries], "ramps": ramps}

    def _entry(self, entry: LegendEntry) -> list[Any]:
        fill = self.fill(entry.fill or self.theme.node_fill, entry.stroke)
        stroke = self.stroke(entry.stroke or self.theme.node_stroke, entry.fill or "")
        return [entry.text, fill, stroke, int(entry.dashed), entry.motif]
