"""Statuses of tensors of every kind, and which op a bad value comes from."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.analysis.finite import first, first_source, nonfinite, producers, status_of

NAN, INF = float("nan"), float("inf")
KINDS = {
    "finite": [1.0, -2.0],
    "nan": [1.0, NAN],
    "+inf": [INF, 0.0],
    "-inf": [0.0, -INF],
    "mixed": [INF, -INF],
}
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("status", "values"), KINDS.items())
def test_every_float_dtype(dtype, status, values):
    assert status_of(torch.tensor(values, dtype=dtype)) == status


@pytest.mark.parametrize("values", [[NAN, INF], [NAN, -INF], [NAN, INF, -INF]])
def test_nan_beside_infinity_is_mixed(values):
    assert status_of(torch.tensor(values)) == "mixed"


@pytest.mark.parametrize(("status", "value"), [("+inf", INF), ("-inf", -INF), ("nan", NAN)])
def test_a_tensor_of_one_bad_value_alone(status, value):
    assert status_of(torch.full((3,), value)) == status


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_numbers_are_what_their_parts_are(dtype):
    assert status_of(torch.tensor([1 + 2j], dtype=dtype)) == "finite"
    assert status_of(torch.tensor([complex(1, NAN)], dtype=dtype)) == "nan"
    assert status_of(torch.tensor([complex(INF, 0), complex(0, -INF)], dtype=dtype)) == "mixed"
    assert status_of(torch.tensor([complex(0, INF)], dtype=dtype).conj()) == "-inf"


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_float8(name):
    dtype = getattr(torch, name)
    assert status_of(torch.tensor([1.0, 2.0]).to(dtype)) == "finite"
    assert status_of(torch.tensor([1.0, NAN]).to(dtype)) == "nan"


def test_float8_with_infinity():
    assert status_of(torch.tensor([-INF, 1.0]).to(torch.float8_e5m2)) == "-inf"


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool])
def test_whole_numbers_are_finite(dtype):
    assert status_of(torch.ones(3, dtype=dtype)) == "finite"


def test_empty_tensors_are_finite():
    assert status_of(torch.empty(0, 3)) == "finite"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sparse_nested_and_quantised_tensors():
    coo = torch.sparse_coo_tensor(
        torch.tensor([[0, 1]]), torch.tensor([1.0, NAN]), (4,), check_invariants=True
    )
    dense = torch.tensor([[0.0, -INF], [1.0, 0.0]])
    assert status_of(coo) == "nan"
    assert status_of(dense.to_sparse_csr()) == "-inf"
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.tensor([INF])], layout=torch.jagged)
    assert status_of(jagged) == "+inf"
    assert status_of(torch.nested.nested_tensor([torch.ones(2), torch.tensor([NAN])])) == "nan"
    assert status_of(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)) == "finite"


def test_without_values_nothing_is_claimed():
    assert status_of(torch.empty(2, device="meta")) is None
    assert status_of(torch.empty(2, device="meta", dtype=torch.int64)) is None


def test_expanded_tensors_are_looked_at_once():
    huge = torch.tensor([[1.0], [-INF]]).expand(2, 10**12)
    assert status_of(huge) == "-inf"
    assert status_of(huge[:1]) == "finite"


def test_gradients_and_modes_do_not_matter():
    with torch.device("cpu"):
        assert status_of(torch.tensor([NAN], requires_grad=True)) == "nan"


# -- on traces -----------------------------------------------------------------------------------------


class Masked(nn.Module):
    def forward(self, x, pad):
        scores = x @ x.transpose(-1, -2)
        scores = scores.masked_fill(pad.unsqueeze(1), -INF)
        return torch.softmax(scores, -1) @ x


PAD = torch.tensor([[False, False, True], [True, True, True]])


def by_type(trace, statuses):
    return {op.type: s for op, s in zip(trace.ops, statuses, strict=True) if s not in (None, "finite")}


@pytest.mark.parametrize("check", ["lazy", "capture"])
def test_a_fully_masked_row(check):
    trace = tl.trace(Masked(), (torch.randn(2, 3, 4), PAD), check_finite=check, save=check == "lazy")
    found = by_type(trace, nonfinite(trace))
    assert found == {"masked_fill": "-inf", "softmax": "nan", "matmul": "nan", "output": "nan"}
    assert [op.type for op in producers(trace)] == ["masked_fill"]
    assert first(trace).type == "masked_fill"
    assert first_source(trace) is first(trace)


def test_nothing_kept_is_not_checked():
    trace = tl.trace(Masked(), (torch.randn(2, 3, 4), PAD), save=False)
    calls = [s for op, s in zip(trace.ops, nonfinite(trace), strict=True) if op.kind == "call"]
    assert calls == [None] * len(calls)
    assert first(trace) is None
    assert producers(trace) == []


def test_partly_kept_is_checked_where_kept():
    trace = tl.trace(Masked(), (torch.randn(2, 3, 4), PAD), save=lambda op: op.func_name == "softmax")
    known = {op.type: s for op, s in zip(trace.ops, nonfinite(trace), strict=True) if op.kind == "call" and s}
    assert known == {"softmax": "nan"}
    assert producers(trace) == []


def test_a_bad_weight_is_the_source():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    with torch.no_grad():
        model[0].weight[1, 1] = NAN
    trace = tl.trace(model, torch.randn(2, 3))
    assert first(trace).type == "linear"
    assert first_source(trace).address == "0.weight"
    assert producers(trace) == []


def test_a_bad_input_is_the_source():
    trace = tl.trace(torch.exp, torch.tensor([INF]))
    assert first(trace).kind == "input"
    assert producers(trace) == []


def test_division_by_zero_produces_and_later_ops_propagate():
    def model(x):
        return ((x / (x - x)) + 1) * 2

    trace = tl.trace(model, torch.ones(2))
    assert [op.type for op in producers(trace)] == ["div"]
    assert by_type(trace, nonfinite(trace)) == {"div": "+inf", "add": "+inf", "mul": "+inf", "output": "+inf"}


def test_one_good_output_of_two_keeps_its_reader_a_producer():
    def model(x):
        good, bad = torch.frexp(x).mantissa, x
        parts = torch.stack([good, bad * INF]).unbind(0)
        return parts[0] / 0.0

    trace = tl.trace(model, torch.ones(2))
    assert [op.type for op in producers(trace)] == ["mul", "div"]


def test_values_are_looked_at_as_they_were_before_a_write():
    def model(x):
        y = x / 0.0
        z = y * 1
        y.fill_(0)
        return y, z

    trace = tl.trace(model, torch.ones(2))
    assert [op.type for op in trace.ops if op.nonfinite == "+inf" and op.kind == "call"] == ["div", "mul"]
