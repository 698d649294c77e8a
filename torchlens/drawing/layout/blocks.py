"""Header, caption and legend: blocks of text above the graph."""

from __future__ import annotations

from torchlens.drawing.layout.placed import PlacedBlock, PlacedSwatch, PlacedText, Rect
from torchlens.drawing.scene import Legend, LegendEntry, LegendRamp
from torchlens.drawing.text import LINE, clean, shorten, text_width
from torchlens.drawing.themes import Theme

MAX_LINE = 900.0
SWATCH = (20.0, 11.0)
ENTRY_GAP = 18.0
STEP = 22.0


def header_block(title: str, lines: tuple[str, ...], theme: Theme, x: float, y: float) -> PlacedBlock:
    """Place the title of the picture and the header lines under it."""
    texts, top, wide = [], y, 0.0
    for number, text in enumerate((title, *lines)):
        size, bold = (theme.title_size, True) if number == 0 else (theme.header_size, False)
        shown = shorten(clean(text), size, MAX_LINE, bold=bold)
        ink = theme.ink if number == 0 else theme.muted
        texts.append(PlacedText(shown, x, y + size, size, ink, bold))
        wide = max(wide, text_width(shown, size, bold=bold))
        y += size * LINE + (5 if number == 0 else 1)
    return PlacedBlock(Rect(x, top, wide, y - top), tuple(texts))


def caption_block(lines: tuple[str, ...], theme: Theme, x: float, y: float) -> PlacedBlock:
    """Place the caption lines."""
    texts, top, wide, size = [], y, 0.0, theme.caption_size
    for line in lines:
        shown = shorten(clean(line), size, MAX_LINE)
        texts.append(PlacedText(shown, x, y + size, size, theme.ink))
        wide = max(wide, text_width(shown, size))
        y += size * LINE + 1.5
    return PlacedBlock(Rect(x, top, wide, y - top), tuple(texts))


def legend_block(legend: Legend, theme: Theme, x: float, y: float, room: float) -> PlacedBlock:
    """Place the legend: samples in rows as wide as ``room``, then one scale after the other."""
    texts: list[PlacedText] = []
    swatches: list[PlacedSwatch] = []
    top, left, wide = y, x, 0.0
    for entry in legend.entries:
        length = SWATCH[0] + 6 + text_width(clean(entry.text), theme.caption_size)
        if left > x and left + length > x + room:
            left, y = x, y + 18
        _entry(entry, theme, left, y, texts, swatches)
        wide = max(wide, left + length - x)
        left += length + ENTRY_GAP
    if legend.entries:
        y += 20
    for ramp in legend.ramps:
        wide = max(wide, _ramp(ramp, theme, x, y, texts, swatches))
        y += 42
    return PlacedBlock(Rect(x, top, wide, y - top), tuple(texts), tuple(swatches))


def _entry(
    entry: LegendEntry,
    theme: Theme,
    x: float,
    y: float,
    texts: list[PlacedText],
    swatches: list[PlacedSwatch],
) -> None:
    rect = Rect(x, y + 1.5, *SWATCH)
    swatches.append(
        PlacedSwatch(rect, entry.fill, entry.stroke or theme.node_stroke, entry.dashed, entry.motif)
    )
    size = theme.caption_size
    texts.append(PlacedText(clean(entry.text), rect.right + 6, y + 7 + size * 0.365, size, theme.ink))


def _ramp(
    ramp: LegendRamp,
    theme: Theme,
    x: float,
    y: float,
    texts: list[PlacedText],
    swatches: list[PlacedSwatch],
) -> float:
    """Place a scale: its title, its steps, and smallest, middle and largest value under them."""
    size = theme.caption_size
    texts.append(PlacedText(clean(ramp.title), x, y + size, size, theme.ink, bold=True))
    long = max(
        STEP * len(ramp.colors),
        40 + sum(text_width(v, size) for v in (ramp.minimum, ramp.median, ramp.maximum)),
    )
    step = long / max(len(ramp.colors), 1)
    for number, color in enumerate(ramp.colors):
        swatches.append(PlacedSwatch(Rect(x + number * step, y + 15, step, 9), color, None))
    base = y + 26 + size
    small = size - 1
    texts.append(PlacedText(clean(ramp.minimum), x, base, small, theme.muted))
    texts.append(PlacedText(clean(ramp.median), x + long / 2, base, small, theme.muted, anchor="middle"))
    texts.append(PlacedText(clean(ramp.maximum), x + long, base, small, theme.muted, anchor="end"))
    return max(long, text_width(clean(ramp.title), size, bold=True))
