"""The overview collapses until it is legible, and never further than needed."""

from __future__ import annotations

import time
import warnings

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.drawing.collapse import Level, at, search


class Adds(nn.Module):
    """``count`` additions, no two modules with the same number, so that nothing folds."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x):
        for _ in range(self.count):
            x = x + 1
        return x


class Group(nn.Module):
    def __init__(self, parts) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


def grouped(ops: int) -> tl.Trace:
    """A trace of ``ops`` ops in groups of groups whose sizes all differ."""
    left, groups, number = ops, [], 0
    while left > 0:
        parts = []
        for position in range(4):
            count = min(left, 3 + (number + 3 * position) % 7)
            left -= count
            if count:
                parts.append(Adds(count))
        number += 1
        groups.append(Group(parts))
    while len(groups) > 12:
        groups = [Group(groups[i : i + 6]) for i in range(0, len(groups), 6)]
    return tl.trace(Group(groups), torch.ones(1), save=False)


@pytest.mark.parametrize("ops", [50, 150, 218])
def test_what_fits_is_not_collapsed(ops):
    trace = grouped(ops)
    drawing = trace.draw(view="overview", rolled=False)
    assert trace.totals.ops == ops
    assert not any("Collapse level" in line for line in drawing.caption)
    assert not any(
        "ops ·" in row.text for node in drawing.nodes for row in node.rows[1:] if node.shape == "box"
    )


@pytest.mark.parametrize("ops", [230, 900, 5_000, 20_000])
def test_what_does_not_fit_is_collapsed_into_the_band(ops):
    trace = grouped(ops)
    assert trace.totals.ops == ops
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drawing = trace.draw(view="overview", rolled=False)
    assert time.perf_counter() - start < 30
    assert any(
        line.startswith("Collapse level 0") or line.startswith("Collapse level 1") for line in drawing.caption
    )
    missed = [w for w in caught if w.message.code == "view_collapse_band_missed"]
    assert bool(missed) != (100 <= len(drawing.nodes) <= 220)
    assert bool(missed) == any("No collapse level leaves" in line for line in drawing.caption)


def test_the_level_of_the_caption_draws_the_same_picture():
    trace = grouped(900)
    drawing = trace.draw(view="overview", rolled=False)
    level = float(
        next(line for line in drawing.caption if line.startswith("Collapse level")).split()[2].rstrip(":")
    )
    again = trace.draw(collapse=level, fold_repeats=True)
    assert [node.id for node in again.nodes] == [node.id for node in drawing.nodes]


def table(*rows):
    last = len(rows) - 1
    return [Level(i / last, i, visible, values) for i, (visible, values) in enumerate(rows)]


def test_the_coarsest_level_in_the_band_is_taken():
    level, fits = search(table((900, 900), (210, 500), (120, 300), (60, 10)))
    assert (level.visible, fits) == (120, True)


def test_nothing_is_collapsed_up_to_220():
    assert search(table((220, 9), (160, 9)))[0].visible == 220
    assert search(table((221, 9), (160, 9)))[0].visible == 160


def test_where_none_fits_the_nearest_to_160_is_taken():
    level, fits = search(table((900, 900), (400, 1), (90, 1)))
    assert (level.visible, fits) == (90, False)
    level, fits = search(table((900, 900), (222, 1), (10, 1)))
    assert (level.visible, fits) == (222, False)


def test_with_a_channel_80_percent_of_the_values_stay():
    rows = table((900, 1000), (300, 810), (150, 790), (110, 100))
    level, fits = search(rows, keep_values=True)
    assert (level.visible, fits) == (300, False)
    assert search(rows)[0].visible == 110
    assert search(table((900, 1000), (150, 800)), keep_values=True)[0].visible == 150


def test_channel_rule_in_a_drawing():
    trace = grouped(900)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = trace.draw(view="overview", rolled=False)
        coloured = trace.draw(view="overview", rolled=False, color_by="time")
    assert len(coloured.nodes) > len(plain.nodes)
    shown = sum(node.id in {op.label for op in trace.ops if op.kind == "call"} for node in coloured.nodes)
    assert shown >= 0.8 * 900


def test_numbers_mean_levels():
    rows = table((9, 0), (7, 0), (5, 0), (3, 0), (1, 0))
    assert [at(rows, level).visible for level in (0, 0.1, 0.25, 0.5, 0.9, 1)] == [9, 9, 7, 5, 1, 1]
