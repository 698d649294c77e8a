"""A forward that raises: the user's exception, a note, and the trace up to there."""

from __future__ import annotations

import pytest
import torch
from harness import names, net
from torch import Tensor, nn

import torchlens as tl
from torchlens.errors import CaptureError


class Inner(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.relu() @ torch.zeros(7, 7)


def test_the_failing_op_and_its_modules_are_marked() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(Inner()))
    with pytest.raises(RuntimeError) as caught:
        tl.trace(model, torch.randn(2, 3))
    trace = caught.value.trace
    assert not trace.completed
    assert [name.strip("_") for name in names(trace)] == ["linear", "relu", "zeros", "matmul"]
    failed = [op for op in trace.ops if op.failed]
    assert [op is trace.ops[-1] for op in failed] == [True]
    assert [op.func_name for op in failed[0].parents] == ["relu", "zeros"]
    assert [call.module.address for call in trace.calls if call.failed] == ["", "1", "1.0"]
    assert trace.failure.exception is caught.value
    note = caught.value.__notes__[0]
    assert "1.0" in note
    assert "(2, 3)" in note
    assert "test_failing.py" in note
    assert trace.draw().svg


def test_an_exception_of_user_code_is_that_very_object() -> None:
    error = LookupError("mine")

    def forward(self: nn.Module, x: Tensor) -> Tensor:
        x = x * 2
        raise error

    with pytest.raises(LookupError) as caught:
        tl.trace(net(forward), torch.ones(2))
    assert caught.value is error
    assert names(error.trace) == ["mul"]
    assert not any(op.failed for op in error.trace.ops)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_base_exceptions_come_through(error: type[BaseException]) -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        x.sin()
        raise error

    with pytest.raises(error) as caught:
        tl.trace(net(forward), torch.ones(2))
    assert names(caught.value.trace) == ["sin"]


def test_a_caught_exception_leaves_a_complete_trace() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        try:
            self.inner(x)
        except RuntimeError:
            return x.tanh()
        return x

    trace = tl.trace(net(forward, inner=Inner()), torch.ones(2, 3))
    assert trace.completed
    assert not any(op.failed for op in trace.ops)
    assert names(trace) == ["relu", "zeros", "tanh"]
    assert [(c.module.address, c.failed) for c in trace.calls] == [("", False), ("inner", True)]


def test_a_trace_within_a_trace_is_refused() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        tl.trace(self.l, x)
        return x

    with pytest.raises(CaptureError) as caught:
        tl.trace(net(forward, l=nn.Linear(2, 2)), torch.ones(2))
    assert caught.value.code == "trace_nested"
    assert tl.trace(nn.Linear(2, 2), torch.ones(2)).completed
