"""Peak memory on programs whose lifetimes can be counted by hand."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.analysis.memory import peak_bytes

KB = 1024
X = torch.zeros(256)  # 1 KiB of float32


def peak(function, *args, **options):
    return peak_bytes(tl.trace(function, args or (X,), **options))


@pytest.mark.parametrize("save", [True, False])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_chain_needs_one_value_and_the_next(save, length):
    def chain(x):
        for _ in range(length):
            x = x + 1
        return x

    assert peak(chain, save=save) == min(length, 2) * KB


def test_what_is_read_late_lives_long():
    def residual(x):
        kept = x + 1  # alive until the last line
        y = kept * 2
        y = y * 3
        y = y * 4  # kept, the previous y and this one
        return kept + y

    assert peak(residual) == 3 * KB


def test_outputs_live_to_the_end():
    def many(x):
        return [x + i for i in range(5)]

    assert peak(many) == 5 * KB


def test_views_extend_the_life_of_their_base():
    def view(x):
        wide = x.repeat(4)  # 4 KiB
        part = wide[:256]
        y = x + 1
        y = y + 1  # 4 KiB still held by the view, two values of 1 KiB
        return y + part

    assert peak(view) == 6 * KB


def test_in_place_ops_take_nothing():
    def inplace(x):
        y = x + 1
        y.mul_(2)
        y.relu_()
        return y

    assert peak(inplace) == KB


def test_views_of_inputs_and_parameters_are_not_counted():
    layer = nn.Linear(256, 256)
    assert peak(lambda x: layer.weight.t()[0] + x.view(256)) == KB


def test_values_that_nobody_reads_die_at_once():
    def unread(x):
        x.repeat(8)
        return x + 1

    assert peak(unread) == 8 * KB


def test_totals_tell_the_peak():
    trace = tl.trace(lambda x: (x + 1) * 2, (X,))
    assert trace.totals.peak_bytes == 2 * KB


def test_a_multilayer_perceptron_by_its_widths():
    widths = [64, 512, 1024, 128]
    model = nn.Sequential(*(nn.Linear(a, b) for a, b in itertools.pairwise(widths)))
    trace = tl.trace(model, torch.zeros(8, 64))
    assert peak_bytes(trace) == 4 * 8 * max(a + b for a, b in itertools.pairwise(widths))


@pytest.mark.parametrize("save", [True, False])
def test_outputs_have_bytes_and_aliases_none(save):
    def model(x):
        y = x + 1
        z = y.view(16, 16)
        z.mul_(2)
        parts = z.chunk(2)
        return parts[0].t().contiguous(), y.to(torch.float64)

    trace = tl.trace(model, (X,), save=save)
    found = [(op.type, op.bytes, op.is_alias) for op in trace.ops if op.kind == "call"]
    assert found == [
        ("add", KB, False),
        ("view", 0, True),
        ("mul", 0, True),
        ("chunk", 0, True),
        ("t", 0, True),
        ("contiguous", KB // 2, False),
        ("to", 2 * KB, False),
    ]
    assert trace.totals.bytes == KB + KB // 2 + 2 * KB
