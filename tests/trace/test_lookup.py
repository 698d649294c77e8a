"""Every printed name resolves, and a miss says what is near."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.errors import AmbiguousReadError


class Looped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm1d(4)
        self.fc = nn.Linear(4, 4)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.bn1(x) + self.shift
        for _ in range(3):
            x = torch.relu(self.fc(x))
        return x


@pytest.fixture
def trace() -> tl.Trace:
    return tl.trace(Looped().eval(), torch.randn(2, 4))


def test_each_kind_of_name_finds_its_kind(trace: tl.Trace) -> None:
    relu = next(layer for layer in trace.layers if layer.type == "relu")
    assert trace[relu.label] is relu
    assert trace[f"{relu.label}:3"] is relu.ops[2]
    assert isinstance(trace["fc"], tl.Module)
    assert isinstance(trace["fc.weight"], tl.Param)
    assert isinstance(trace["bn1.running_mean"], tl.Buffer)
    assert trace[0] is trace.ops[0]
    assert trace[-1] is trace.ops[-1]
    assert trace[1:3] == trace.ops[1:3]


def test_every_name_in_the_text_view_resolves(trace: tl.Trace) -> None:
    text = str(trace)
    labels = re.findall(r"\b(?:[a-z_0-9]+_\d+_\d+(?::\d+)?|(?:input|output|buffer)_\d+)\b", text)
    assert len(labels) > 8
    for label in labels:
        assert label in trace, label
    for op in trace:
        assert trace[op.label] in (op, op.layer)


def test_labels_count_within_type_and_over_all(trace: tl.Trace) -> None:
    labels = [layer.label for layer in trace.layers if layer.kind == "call"]
    assert [int(label.rsplit("_", 1)[1]) for label in labels] == list(range(1, len(labels) + 1))
    assert labels[0] == "batch_norm_1_1"


def test_a_miss_names_the_nearest(trace: tl.Trace) -> None:
    with pytest.raises(
        tl.NotFoundError, match=re.escape("Nothing in the trace is named 'fc.wieght'.")
    ) as error:
        trace["fc.wieght"]
    assert "fc.weight" in error.value.nearest
    assert isinstance(error.value, LookupError)
    assert "fc.wieght" not in trace
    with pytest.raises(tl.NotFoundError, match="none at 99"):
        trace[99]
    assert 99 not in trace


def test_a_read_that_differs_by_pass_raises_and_names_the_way(trace: tl.Trace) -> None:
    relu = next(layer for layer in trace.layers if layer.type == "relu")
    assert relu.num_passes == 3
    with pytest.raises(AmbiguousReadError, match=r"has 3 passes.*Read \.ops\[i\]\.out instead"):
        _ = relu.out
    single = next(layer for layer in trace.layers if layer.type == "batch_norm")
    assert torch.equal(single.out, single.ops[0].out)
    with pytest.raises(AttributeError, match="no attribute 'outs'"):
        _ = single.outs


def test_edges_carry_slot_and_output_index() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        low, high = x.chunk(2)
        return torch.sub(low, other=high) + torch.cat([high, low])

    trace = tl.trace(forward, torch.randn(2, 2))
    sub = next(op for op in trace if op.type == "sub")
    assert [(e.slot, e.out_index) for e in sub.inputs] == [("0", 0), ("other", 1)]
    cat = next(op for op in trace if op.type == "cat")
    assert [(e.slot, e.out_index) for e in cat.inputs] == [("0[0]", 1), ("0[1]", 0)]


def test_shared_module_has_all_addresses() -> None:
    shared = nn.Linear(2, 2)
    trace = tl.trace(nn.Sequential(shared, nn.ReLU(), shared), torch.randn(1, 2))
    assert trace["0"] is trace["2"]
    assert trace["0"].num_passes == 2
    assert trace["0.weight"].addresses == ("0.weight", "2.weight")
    assert trace.totals.params == 6
    assert trace["0:2"].ops[0] is [op for op in trace if op.type == "linear"][1]
