"""Text views: what they list, and that columns add up."""

from __future__ import annotations

import re

import torch
from torch import nn

import torchlens as tl
from torchlens.trace.quantities import Bytes, Count, Duration, Flops
from torchlens.trace.text import LONGEST, module_rows


def tied() -> nn.Module:
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 4), nn.Linear(4, 10, bias=False))
    model[2].weight = model[0].weight
    return model


def test_module_table_adds_up_with_tied_weights() -> None:
    trace = tl.trace(tied(), torch.tensor([[1, 2]]))
    rows = module_rows(trace)
    assert sum(row.params for row in rows) == trace.totals.params == 10 * 4 + 4 * 4 + 4
    assert sum(row.flops for row in rows) == trace.totals.flops
    assert "60" in trace.summary().splitlines()[-2]


def test_a_row_at_the_depth_limit_stands_for_what_is_below() -> None:
    trace = tl.trace(nn.Sequential(tied()), torch.tensor([[1, 2]]))
    whole = module_rows(trace, depth=0)
    assert [row.name for row in whole] == ["Sequential"]
    assert whole[0].params == 60
    assert whole[0].flops == trace.totals.flops > 0


def test_ops_outside_of_modules_have_a_row() -> None:
    layer = nn.Linear(3, 3)
    trace = tl.trace(lambda x: layer(x) * 2, torch.randn(2, 3))
    rows = {row.name: row for row in module_rows(trace)}
    assert rows["(elsewhere)"].flops == 6
    assert rows["layer"].params == 12


def test_the_middle_of_a_long_trace_is_counted_not_dropped_silently() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        for _ in range(600):
            x = x + 1
        return x

    text = str(tl.trace(forward, torch.zeros(1)))
    match = re.search(r"… (\d+) more ops; read trace\.ops\[(\d+):(\d+)\] …", text)
    assert match is not None
    hidden, first, last = map(int, match.groups())
    assert hidden == last - first == 602 - LONGEST
    shown = [line for line in text.splitlines() if re.match(r"\s+(add|input|output)_", line)]
    assert len(shown) == LONGEST


def test_quantities_print_as_people_write_and_count_as_numbers() -> None:
    assert str(Bytes(1536)) == "1.5 KiB"
    assert str(Bytes(7)) == "7 B"
    assert str(Flops(3_600_000_000)) == "3.6 GFLOP"
    assert str(Count(11_689_512)) == "11.7 M"
    assert str(Duration(0.00123)) == "1.23 ms"
    assert str(Duration(0.0)) == "0 s"
    assert Bytes(1024) + 1 == 1025
    assert f"{Flops(10):,}" == "10"


def test_failed_trace_says_so() -> None:
    try:
        tl.trace(nn.Linear(3, 3), torch.randn(1, 4))
    except RuntimeError as error:
        partial = error.trace  # type: ignore[attr-defined]
    assert not partial.completed
    assert "stopped by RuntimeError" in str(partial)
    assert [op.failed for op in partial] == [False, True]
