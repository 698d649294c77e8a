from __future__ import annotations

import colorsys
import dataclasses
from collections.abc import Iterator, Mapping

import pytest

from torchlens.drawing.output.shapes import motif_ink
from torchlens.drawing.themes import THEMES, Theme

NAMES = ("torchlens", "paper", "dark", "colorblind", "high_contrast")


def rgb(color: str) -> tuple[float, float, float]:
    return tuple(int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))  # type: ignore[return-value]


def ratio(a: str, b: str) -> float:
    """WCAG 2 contrast, computed here on its own."""
    values = []
    for color in (a, b):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb(color)]
        values.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(values) / min(values)


def colors(part: object) -> Iterator[str]:
    if isinstance(part, str):
        if part.startswith("#"):
            yield part
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from colors(getattr(part, field.name))
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from colors(value)
    elif isinstance(part, tuple):
        for value in part:
            yield from colors(value)


def fills(theme: Theme) -> list[str]:
    return [
        *theme.ramp,
        *(role.fill for role in theme.roles.values()),
        *theme.box_fills,
        theme.node_fill,
        theme.background,
    ]


def test_there_are_five_themes_and_they_are_frozen() -> None:
    assert tuple(THEMES) == NAMES
    with pytest.raises(dataclasses.FrozenInstanceError):
        THEMES["torchlens"].ink = "#000000"  # type: ignore[misc]
    with pytest.raises(TypeError):
        THEMES["torchlens"].roles["input"] = None  # type: ignore[index]


@pytest.mark.parametrize("name", NAMES)
def test_no_theme_draws_blue(name: str) -> None:
    found = set(colors(THEMES[name]))
    theme = THEMES[name]
    found |= {ink for fill in fills(theme) for ink in (theme.ink_on(fill), theme.muted_on(fill))}
    assert len(found) > 30
    for color in found:
        hue, _, saturation = colorsys.rgb_to_hls(*rgb(color))[0] * 360, 0, colorsys.rgb_to_hls(*rgb(color))[2]
        assert not (180 <= hue <= 260 and saturation > 0.15), color


@pytest.mark.parametrize("name", NAMES)
def test_every_text_reads_on_every_fill(name: str) -> None:
    theme = THEMES[name]
    for fill in fills(theme):
        assert ratio(theme.ink_on(fill), fill) >= 4.5, fill
        assert ratio(theme.muted_on(fill), fill) >= 4.5, fill
    for role in theme.roles.values():
        assert ratio(role.ink, role.fill) >= 4.5, role
        assert ratio(theme.muted_on(role.fill, role.ink), role.fill) >= 4.5, role
    for fill in (theme.background, *theme.box_fills):
        assert ratio(theme.muted, fill) >= 4.5
        assert ratio(theme.box_ink, fill) >= 4.5
        assert ratio(theme.muted_on(fill, theme.box_ink), fill) >= 4.5
        assert ratio(theme.ink, fill) >= 4.5


@pytest.mark.parametrize("name", NAMES)
def test_text_reads_across_motifs(name: str) -> None:
    theme = THEMES[name]
    for fill in (theme.node_fill, *(role.fill for role in theme.roles.values())):
        line = motif_ink(fill, theme.ink_on(fill))
        assert ratio(line, fill) >= 1.2, "the motif must be seen"


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_seen_and_ramps_run_one_way(name: str) -> None:
    theme = THEMES[name]
    for fill in (theme.background, *theme.box_fills):
        assert ratio(theme.edge, fill) >= 3
        assert ratio(theme.back_edge, fill) >= 3
    steps = [ratio(step, "#000000") for step in theme.ramp]
    assert len(steps) == 9
    assert steps in (sorted(steps), sorted(steps, reverse=True))


def test_the_default_theme_keeps_the_known_colours() -> None:
    roles = THEMES["torchlens"].roles
    known = {"input": "#98FB98", "output": "#FF9999", "trainable": "#D9D9D9", "frozen": "#B0B0B0"}
    assert {name: roles[name].fill for name in known} == known
    assert roles["branch"].fill == "#F7D460"
    assert THEMES["torchlens"].node_fill == "#FFFFFF"
    assert THEMES["colorblind"].roles["input"].fill == "#009E73"
    assert THEMES["colorblind"].roles["output"].fill == "#D55E00"
    for name in ("paper", "high_contrast"):
        assert {key: THEMES[name].roles[key].fill for key in known} == known


def test_every_theme_has_every_role() -> None:
    sets = {frozenset(theme.roles) for theme in THEMES.values()}
    assert len(sets) == 1
    wanted = "input output trainable frozen mixed buffer constant branch edited changed failed"
    wanted += " aggregate stub opaque"
    assert sets.pop() == frozenset(wanted.split())
