"""The five themes as frozen data, and the arithmetic of readable ink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

from torchlens.drawing.scene import RowKind

MIN_CONTRAST = 4.5


@dataclass(frozen=True, slots=True)
class Role:
    """How nodes of one role look."""

    fill: str
    stroke: str
    ink: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class RowStyle:
    """How one kind of text row looks: size in points, weight, and whether its ink is muted."""

    size: float
    bold: bool = False
    muted: bool = False


ROWS: Mapping[RowKind, RowStyle] = MappingProxyType(
    {
        "title": RowStyle(10.5, bold=True),
        "shape": RowStyle(9.5),
        "detail": RowStyle(8.5, muted=True),
        "note": RowStyle(8.5),
    }
)


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours, line weights and text sizes of a picture.

    ``ramp`` runs from little to much; ``box_fills`` holds the fill of boxes by nesting depth and
    repeats its last entry for deeper ones.
    """

    name: str
    background: str
    ink: str
    muted: str
    edge: str
    back_edge: str
    node_fill: str
    node_stroke: str
    box_fills: tuple[str, ...]
    box_stroke: str
    box_ink: str
    roles: Mapping[str, Role]
    ramp: tuple[str, ...]
    inks: tuple[str, str]
    edge_width: float = 1.0
    node_width: float = 0.9
    box_width: float = 0.8
    rows: Mapping[RowKind, RowStyle] = field(default_factory=lambda: ROWS)
    title_size: float = 17.0
    header_size: float = 10.5
    caption_size: float = 9.5
    label_size: float = 8.5

    def ink_on(self, fill: str) -> str:
        """Return a text colour of this theme with a contrast of at least 4.5 on ``fill``."""
        best = max(self.inks, key=lambda ink: contrast(ink, fill))
        if contrast(best, fill) >= MIN_CONTRAST:
            return best
        return max("#000000", "#FFFFFF", key=lambda ink: contrast(ink, fill))

    def muted_on(self, fill: str, ink: str | None = None) -> str:
        """Return a quieter text colour than ``ink`` that still reads on ``fill``."""
        return _quiet(ink or self.ink_on(fill), fill)

    def box_fill(self, depth: int) -> str:
        """Return the fill of a box at nesting depth ``depth`` (0 stands in no other box)."""
        return self.box_fills[min(depth, len(self.box_fills) - 1)]


def channels(color: str) -> tuple[float, float, float]:
    """Return red, green and blue of ``#RRGGBB`` between 0 and 1."""
    return int(color[1:3], 16) / 255, int(color[3:5], 16) / 255, int(color[5:7], 16) / 255


@lru_cache(maxsize=4096)
def luminance(color: str) -> float:
    """Return the relative luminance of ``#RRGGBB`` as WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Return the WCAG contrast ratio of two colours, 1 to 21."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def mix(first: str, second: str, share: float) -> str:
    """Return ``first`` with ``share`` of ``second`` mixed in."""
    pairs = zip(channels(first), channels(second), strict=True)
    return "#" + "".join(f"{round(255 * (a + (b - a) * share)):02X}" for a, b in pairs)


@lru_cache(maxsize=4096)
def _quiet(ink: str, fill: str) -> str:
    for share in (0.34, 0.26, 0.18, 0.1):
        mixed = mix(ink, fill, share)
        if contrast(mixed, fill) >= MIN_CONTRAST + 0.5:
            return mixed
    return ink


def _roles(ink: str, table: dict[str, tuple[str, str]]) -> Mapping[str, Role]:
    widths = {"edited": 2.4, "changed": 2.0, "failed": 2.4}
    dashes = {"stub", "opaque", "constant"}
    return MappingProxyType(
        {
            name: Role(fill, stroke, ink, widths.get(name, 1.0), name in dashes)
            for name, (fill, stroke) in table.items()
        }
    )


_DEFAULT = {
    "input": ("#98FB98", "#3F8F3F"),
    "output": ("#FF9999", "#B04A4A"),
    "trainable": ("#D9D9D9", "#757575"),
    "frozen": ("#B0B0B0", "#5E5E5E"),
    "mixed": ("#C6C6C6", "#686868"),
    "buffer": ("#FFFFFF", "#8C8C8C"),
    "constant": ("#FFFFFF", "#8C8C8C"),
    "branch": ("#F7D460", "#A07D14"),
    "edited": ("#FFFFFF", "#7B2CBF"),
    "changed": ("#FFFFFF", "#B78AE0"),
    "failed": ("#FFF1EF", "#C62828"),
    "aggregate": ("#EDEDEA", "#8A8A86"),
    "stub": ("#FFFFFF", "#9A9A9A"),
    "opaque": ("#F4F4F1", "#757575"),
}

_TORCHLENS = Theme(
    name="torchlens",
    background="#FFFFFF",
    ink="#1C1C1C",
    muted="#5F5F5F",
    edge="#767676",
    back_edge="#A0522D",
    node_fill="#FFFFFF",
    node_stroke="#7D7D7D",
    box_fills=("#F8F8F6", "#F2F2EF", "#ECECE8", "#E6E6E2"),
    box_stroke="#C9C9C4",
    box_ink="#4A4A48",
    roles=_roles("#1C1C1C", _DEFAULT),
    ramp=(
        "#FFF8EA",
        "#FEEBC9",
        "#FDDAA3",
        "#FCC37A",
        "#F9A655",
        "#F0843A",
        "#DE6029",
        "#C03F1E",
        "#982415",
    ),
    inks=("#1C1C1C", "#FFFFFF"),
)

_PAPER = replace(
    _TORCHLENS,
    name="paper",
    ink="#000000",
    muted="#4F4F4F",
    edge="#4A4A4A",
    back_edge="#6B3E1E",
    node_stroke="#3A3A3A",
    box_fills=("#FFFFFF", "#FFFFFF", "#FAFAFA", "#FAFAFA"),
    box_stroke="#9C9C9C",
    box_ink="#2E2E2E",
    roles=_roles("#000000", _DEFAULT),
    ramp=(
        "#FBF6EC",
        "#F3E6CC",
        "#E8D2A8",
        "#DABB84",
        "#C8A064",
        "#AF8249",
        "#8F6332",
        "#6C4620",
        "#472B10",
    ),
    inks=("#000000", "#FFFFFF"),
    edge_width=0.8,
    node_width=0.8,
    box_width=0.6,
)

_DARK = Theme(
    name="dark",
    background="#191A19",
    ink="#F0F0EC",
    muted="#B4B4AE",
    edge="#A3A39C",
    back_edge="#E0A878",
    node_fill="#2B2C2A",
    node_stroke="#8E8E88",
    box_fills=("#20211F", "#262725", "#2C2D2A", "#323330"),
    box_stroke="#52534E",
    box_ink="#CFCFC8",
    roles=_roles(
        "#F0F0EC",
        {
            "input": ("#1F5A2B", "#7FD68B"),
            "output": ("#7A2E2E", "#F29C9C"),
            "trainable": ("#4A4A47", "#B9B9B3"),
            "frozen": ("#3A3A38", "#9A9A94"),
            "mixed": ("#424240", "#AAAAA4"),
            "buffer": ("#2B2C2A", "#8E8E88"),
            "constant": ("#2B2C2A", "#8E8E88"),
            "branch": ("#66520F", "#F7D460"),
            "edited": ("#2B2C2A", "#C58BFF"),
            "changed": ("#2B2C2A", "#8F62BE"),
            "failed": ("#4A1F1D", "#FF7A70"),
            "aggregate": ("#383936", "#9A9A94"),
            "stub": ("#191A19", "#8E8E88"),
            "opaque": ("#2F302E", "#A3A39C"),
        },
    ),
    ramp=(
        "#2E2A22",
        "#463A22",
        "#5F4A20",
        "#7A5A1C",
        "#8C651B",
        "#BA8B22",
        "#D29F2B",
        "#EBB944",
        "#FFD76A",
    ),
    inks=("#141513", "#F0F0EC"),
)

_COLORBLIND = replace(
    _TORCHLENS,
    name="colorblind",
    back_edge="#8A3D00",
    roles=_roles(
        "#000000",
        {
            **_DEFAULT,
            "input": ("#009E73", "#00543D"),
            "output": ("#D55E00", "#7A3600"),
            "branch": ("#F0E442", "#8C8400"),
            "failed": ("#FFFFFF", "#D55E00"),
            "edited": ("#FFFFFF", "#8A2A86"),
            "changed": ("#FFFFFF", "#CC79A7"),
        },
    ),
    ramp=(
        "#FFFCE8",
        "#FFF2BC",
        "#FBE288",
        "#F4CC55",
        "#E9AE1E",
        "#E08C00",
        "#CF6600",
        "#A34700",
        "#6F2F00",
    ),
    inks=("#000000", "#FFFFFF"),
)

_HIGH_CONTRAST = replace(
    _TORCHLENS,
    name="high_contrast",
    ink="#000000",
    muted="#1F1F1F",
    edge="#000000",
    back_edge="#7A1F00",
    node_stroke="#000000",
    box_fills=("#FFFFFF", "#FFFFFF", "#FFFFFF", "#FFFFFF"),
    box_stroke="#000000",
    box_ink="#000000",
    roles=MappingProxyType(
        {
            **_roles("#000000", {name: (fill, "#000000") for name, (fill, _) in _DEFAULT.items()}),
            "edited": Role("#FFFFFF", "#6A00B0", "#000000", 3.4),
            "changed": Role("#FFFFFF", "#A74FE0", "#000000", 3.0),
            "failed": Role("#FFFFFF", "#C00000", "#000000", 3.4),
        }
    ),
    ramp=(
        "#FFFFFF",
        "#FFF3B0",
        "#FFE066",
        "#FFC61A",
        "#FF9F0A",
        "#F06A00",
        "#C93800",
        "#8F1700",
        "#560000",
    ),
    inks=("#000000", "#FFFFFF"),
    edge_width=1.4,
    node_width=1.5,
    box_width=1.2,
)

THEMES: Mapping[str, Theme] = MappingProxyType(
    {theme.name: theme for theme in (_TORCHLENS, _PAPER, _DARK, _COLORBLIND, _HIGH_CONTRAST)}
)
"""Every theme by name; the first is the default."""
