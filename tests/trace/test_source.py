"""Labels beside the model's own source, and the data frame."""

from __future__ import annotations

import inspect
import re
import sys

import pytest
import torch
from torch import nn

import torchlens as tl


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        return helper(y) + 1


def helper(y: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        y = torch.tanh(y)
    return y


def marked(text: str) -> dict[str, str]:
    """Margin by source line of a listing, for lines that have one."""
    lines = [re.fullmatch(r"(.*?) +\d+  (.*)", line) for line in text.splitlines()[1:]]
    pairs = [match.groups() for match in lines if match is not None]
    return {source.strip(): margin.strip() for margin, source in pairs if margin.strip()}


def test_a_module_shows_its_forward() -> None:
    trace = tl.trace(Net(), torch.randn(1, 4))
    text = trace.source(trace.modules[0])
    assert text.splitlines()[0] == "test_source.py: forward"
    first = inspect.getsourcelines(Net.forward)[1]
    assert str(first) in text.splitlines()[1]
    margins = marked(text)
    assert margins["y = self.fc(x)"] == "fc"
    assert margins["return helper(y) + 1"] == "tanh_1_2:1, tanh_1_2:2, add_1_3"


def test_an_op_shows_the_function_that_made_it() -> None:
    trace = tl.trace(Net(), torch.randn(1, 4))
    text = trace.source("tanh_1_2")
    assert text.splitlines()[0] == "test_source.py: helper"
    assert marked(text) == {"y = torch.tanh(y)": "tanh_1_2:1, tanh_1_2:2"}


def test_what_no_code_made_is_refused() -> None:
    trace = tl.trace(Net(), torch.randn(1, 4))
    with pytest.raises(tl.InvalidArgumentError, match="was not made by code") as error:
        trace.source("input_1")
    assert error.value.code == "trace_source_unavailable"
    with pytest.raises(tl.NotFoundError):
        trace.source("nothing")


def test_frame_has_a_row_per_op_and_says_unknown_as_missing() -> None:
    trace = tl.trace(Net(), torch.randn(1, 4), fake=True)
    frame = trace.to_pandas()
    assert list(frame.index) == [op.label for op in trace]
    assert frame["func_duration"].isna().all()
    calls = frame[frame["kind"] == "call"]
    assert calls["flops"].sum() == trace.totals.flops
    assert calls.loc["linear_1_1", "params"] == ["fc.weight", "fc.bias"]
    assert calls.loc["linear_1_1", "module"] == "fc"


def test_without_pandas_the_way_to_get_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    trace = tl.trace(Net(), torch.randn(1, 4))
    with pytest.raises(tl.TorchLensError, match=r"torchlens\[pandas\]"):
        trace.to_pandas()
