"""FLOPs of single functions against closed formulas and against torch's own counter."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import torchlens as tl
from torchlens.analysis.flops import flops, macs, softmax_flops, work


def counted(function, *args):
    """FLOPs and multiply-adds of the only call of ``function`` that has any, by meta tensors."""
    trace = tl.trace(function, args)
    calls = [w for op, w in zip(trace.ops, work(trace), strict=True) if op.kind == "call"]
    assert calls, "nothing was recorded"
    assert None not in calls, "a call is unknown"
    return sum(w.flops for w in calls), sum(w.macs for w in calls)


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, device="meta", dtype=dtype)


A, B, M, V = meta(2, 3, 4), meta(2, 4, 5), meta(3, 4), meta(4)
PRODUCTS = {
    "bmm": (lambda: torch.bmm(A, B), 2 * 3 * 4 * 5),
    "matmul": (lambda: A @ B, 2 * 3 * 4 * 5),
    "matmul broadcast": (lambda: torch.matmul(M, B), 2 * 3 * 4 * 5),
    "matmul matrix vector": (lambda: A @ V, 2 * 3 * 4),
    "matmul vectors": (lambda: V @ V, 4),
    "rmatmul": (lambda: M.__rmatmul__(meta(7, 3)), 7 * 3 * 4),
    "mm": (lambda: torch.mm(M, M.t()), 3 * 4 * 3),
    "mv": (lambda: torch.mv(M, V), 3 * 4),
    "dot": (lambda: torch.dot(V, V), 4),
    "vdot": (lambda: torch.vdot(V, V), 4),
    "inner": (lambda: torch.inner(M, M), 3 * 3 * 4),
    "outer": (lambda: torch.outer(V, meta(5)), 4 * 5),
    "ger": (lambda: torch.ger(V, meta(5)), 4 * 5),
    "addmm": (lambda: torch.addmm(meta(3, 3), M, M.t()), 3 * 4 * 3),
    "addmv": (lambda: torch.addmv(meta(3), M, V), 3 * 4),
    "baddbmm": (lambda: torch.baddbmm(meta(2, 3, 5), A, B), 2 * 3 * 4 * 5),
    "addbmm": (lambda: torch.addbmm(meta(3, 5), A, B), 2 * 3 * 4 * 5),
    "linear": (lambda: F.linear(A, meta(6, 4)), 2 * 3 * 4 * 6),
    "linear of a vector": (lambda: F.linear(V, meta(6, 4)), 4 * 6),
    "tensordot": (lambda: torch.tensordot(A, B, dims=([0, 2], [0, 1])), 3 * 2 * 4 * 5),
    "tensordot outer": (lambda: torch.tensordot(V, M, dims=0), 4 * 12),
    "bilinear": (lambda: F.bilinear(meta(7, 3), meta(7, 4), meta(5, 3, 4)), 7 * 5 * 4 * (3 + 1)),
    "multi_dot": (
        lambda: torch.linalg.multi_dot([meta(10, 100), meta(100, 5), meta(5, 50)]),
        10 * 100 * 5 + 10 * 5 * 50,
    ),
    "matrix_power": (lambda: torch.matrix_power(meta(4, 4), 5), 3 * 4**3),
    "einsum": (lambda: torch.einsum("bij,bjk->bik", A, B), 2 * 3 * 4 * 5),
    "einsum list": (lambda: torch.einsum("bij,bjk->bik", [A, B]), 2 * 3 * 4 * 5),
    "einsum implied": (lambda: torch.einsum("bij,bjk", A, B), 2 * 3 * 4 * 5),
    "einsum dots": (
        lambda: torch.einsum("...ij,...jk->...ik", meta(6, 2, 3, 4), meta(2, 4, 5)),
        6 * 2 * 3 * 4 * 5,
    ),
    "einsum outer": (lambda: torch.einsum("i,j->ij", V, meta(5)), 4 * 5),
    "einsum of three": (
        lambda: torch.einsum("ij,jk,kl->il", meta(2, 3), meta(3, 4), meta(4, 5)),
        2 * 3 * 4 + 2 * 4 * 5,
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_two_flops_a_multiply_add(name):
    function, expected = PRODUCTS[name]
    assert counted(function) == (2 * expected, expected)


def test_grouped_product_meets_each_row_once():
    if not hasattr(F, "grouped_mm"):
        pytest.skip("this torch has no grouped product")
    tokens, weights = torch.zeros(8, 16, dtype=torch.bfloat16), torch.zeros(2, 16, 32, dtype=torch.bfloat16)
    ends = torch.tensor([3, 8], dtype=torch.int32)
    assert counted(lambda: F.grouped_mm(tokens, weights, offs=ends))[1] == 8 * 16 * 32


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sparse_products_count_what_is_stored(layout):
    dense = torch.eye(6)
    sparse = dense.to_sparse() if layout == "coo" else dense.to_sparse_csr()
    assert counted(lambda x: torch.sparse.mm(sparse, x), torch.ones(6, 4)) == (2 * 6 * 4, 6 * 4)
    assert counted(lambda x: sparse @ x, torch.ones(6, 4)) == (2 * 6 * 4, 6 * 4)


def test_bias_adds_count_as_adds():
    assert counted(nn.Linear(4, 6), torch.ones(3, 4)) == (2 * 72 + 18, 72)
    assert counted(nn.Conv1d(2, 3, 1), torch.ones(1, 2, 5)) == (2 * 30 + 15, 30)
    assert counted(lambda: torch.addmm(meta(3), M, M.t())) == (2 * 36 + 9, 36)


def conv(cin, cout, out, kernel, groups=1):
    return math.prod(out) * cout * cin // groups * math.prod(kernel)


CONVOLUTIONS = {
    "grouped": (
        nn.Conv2d(6, 4, 3, padding=1, groups=2, bias=False),
        (1, 6, 8, 8),
        conv(6, 4, (8, 8), (3, 3), 2),
    ),
    "depthwise": (
        nn.Conv2d(6, 6, 3, padding=1, groups=6, bias=False),
        (2, 6, 8, 8),
        2 * conv(6, 6, (8, 8), (3, 3), 6),
    ),
    "dilated": (nn.Conv1d(4, 8, 3, padding=2, dilation=2, bias=False), (1, 4, 10), conv(4, 8, (10,), (3,))),
    "strided": (nn.Conv2d(3, 5, 3, stride=2, bias=False), (1, 3, 9, 9), conv(3, 5, (4, 4), (3, 3))),
    "same": (nn.Conv2d(3, 5, 3, padding="same", bias=False), (1, 3, 7, 7), conv(3, 5, (7, 7), (3, 3))),
    "volume": (nn.Conv3d(3, 2, 3, padding=1, bias=False), (1, 3, 3, 4, 4), conv(3, 2, (3, 4, 4), (3, 3, 3))),
    "unbatched": (nn.Conv2d(3, 5, 1, bias=False), (3, 4, 4), conv(3, 5, (4, 4), (1, 1))),
    "transposed": (nn.ConvTranspose2d(3, 1, 2, stride=2, bias=False), (1, 3, 2, 2), 2 * 2 * 3 * 1 * 4),
    "transposed depthwise": (
        nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1, output_padding=1, groups=4, bias=False),
        (1, 4, 8, 8),
        8 * 8 * 4 * 1 * 9,
    ),
    "transposed one": (nn.ConvTranspose1d(6, 4, 3, bias=False), (1, 6, 5), 5 * 6 * 4 * 3),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name):
    layer, shape, expected = CONVOLUTIONS[name]
    x = torch.ones(shape)
    assert counted(layer, x) == (2 * expected, expected)
    with FlopCounterMode(display=False) as reference:
        layer(x)
    assert reference.get_total_flops() == 2 * expected


# -- attention -----------------------------------------------------------------------------------------


def composed(q, k, v, mask=None, causal=False):
    if q.shape[-3] != k.shape[-3]:
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scores = q @ k.transpose(-2, -1) * 0.125
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], device="meta").triu(1).bool(), 0.0)
    return scores.softmax(-1) @ v


@pytest.mark.parametrize("lengths", [(64, 64), (5, 9)])
@pytest.mark.parametrize("kind", ["plain", "mask", "causal", "grouped"])
def test_fused_and_composed_attention_agree(kind, lengths):
    longer, heads = lengths[1], 3 if kind == "grouped" else 12
    q, k, v = meta(2, 12, lengths[0], 64), meta(2, heads, longer, 64), meta(2, heads, longer, 32)
    mask = meta(lengths[0], longer) if kind == "mask" else None
    causal = kind == "causal"

    def fused(q, k, v):
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=kind == "grouped"
        )

    products = 2 * 12 * lengths[0] * longer * (64 + 32)
    total, done = counted(fused, q, k, v)
    assert (total, done) == (2 * products, products)
    op = next(op for op in tl.trace(fused, (q, k, v)).ops if op.kind == "call")
    inside = softmax_flops(op)
    assert (total + inside, done) == counted(lambda q, k, v: composed(q, k, v, mask, causal), q, k, v)


def test_attention_on_the_cpu_is_counted():
    q = torch.randn(1, 12, 64, 64)
    assert counted(F.scaled_dot_product_attention, q, q, q)[1] == 2 * 12 * 64 * 64 * 64


@pytest.mark.parametrize("weights", [True, False])
def test_opened_multihead_attention(weights):
    layer = nn.MultiheadAttention(16, 4, bias=False, batch_first=True)
    x = torch.randn(2, 6, 16)
    products = 2 * (4 * 6 * 16 * 16 + 2 * 6 * 6 * 16)
    assert sum(m or 0 for m in macs(tl.trace(layer, (x, x, x), {"need_weights": weights}))) == products


# -- recurrent -----------------------------------------------------------------------------------------


def gates(kinds, hidden, width):
    return kinds * hidden * (hidden + width)


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
def test_recurrent_layers():
    x = torch.randn(6, 2, 3)
    assert counted_rnn(nn.LSTM(3, 5, num_layers=2, bidirectional=True), x) == 12 * 2 * (
        gates(4, 5, 3) + gates(4, 5, 10)
    )
    assert counted_rnn(nn.GRU(3, 4), x) == 12 * gates(3, 4, 3)
    assert counted_rnn(nn.RNN(3, 4), x) == 12 * gates(1, 4, 3)
    assert counted_rnn(nn.RNN(3, 4, nonlinearity="relu", batch_first=True), x) == 12 * gates(1, 4, 3)
    assert counted_rnn(nn.LSTM(3, 4), x[:, 0]) == 6 * gates(4, 4, 3)
    projected = 12 * (4 * 5 * (3 + 2) + 2 * 5)
    assert counted_rnn(nn.LSTM(3, 5, proj_size=2), x) == projected


def counted_rnn(layer, x):
    return sum(m or 0 for m in macs(tl.trace(layer, x)))


@pytest.mark.parametrize(("make", "kinds"), [(nn.LSTMCell, 4), (nn.GRUCell, 3), (nn.RNNCell, 1)])
def test_cells(make, kinds):
    assert counted_rnn(make(3, 5), torch.randn(2, 3)) == 2 * gates(kinds, 5, 3)


@pytest.mark.parametrize(("make", "kinds"), [(nn.LSTM, 4), (nn.GRU, 3)])
def test_padding_of_packed_sequences_is_not_counted(make, kinds):
    packed = nn.utils.rnn.pack_padded_sequence(
        torch.randn(3, 5, 3), torch.tensor([5, 3, 2]), batch_first=True
    )
    layer = make(3, 4)
    assert counted_rnn(lambda p: layer(p)[0].data, (packed,)) == (5 + 3 + 2) * gates(kinds, 4, 3)


# -- the rest ------------------------------------------------------------------------------------------

X = meta(2, 4, 8, 8)
N = 2 * 4 * 8 * 8
SIMPLE = {
    "relu": (lambda: F.relu(X), N),
    "gelu": (lambda: F.gelu(X), N),
    "add": (lambda: X + X, N),
    "add broadcast": (lambda: X + meta(8), N),
    "radd": (lambda: 1 + X, N),
    "add in place": (lambda: meta(3).add_(1), 3),
    "reflected sub": (lambda: 1 - X, N),
    "compare": (lambda: X > 0, N),
    "where": (lambda: torch.where(meta(8, dtype=torch.bool), X, X), N),
    "sum": (lambda: X.sum(), N),
    "mean": (lambda: X.mean(-1), N),
    "max": (lambda: X.max(-1), N),
    "max of two": (lambda: torch.max(meta(3), meta(3)), 3),
    "cumsum": (lambda: X.cumsum(0), N),
    "norm": (lambda: torch.linalg.norm(X), N),
    "softmax": (lambda: X.softmax(-1), 5 * N),
    "log_softmax": (lambda: F.log_softmax(X, 1), 5 * N),
    "layer_norm": (lambda: F.layer_norm(X, (8,)), 5 * N),
    "layer_norm affine": (lambda: F.layer_norm(X, (8,), meta(8), meta(8)), 7 * N),
    "batch_norm stored": (lambda: F.batch_norm(X, meta(4), meta(4), meta(4), meta(4)), 4 * N),
    "rms_norm": (lambda: F.rms_norm(X, (8,)), 3 * N),
    "max_pool": (lambda: F.max_pool2d(X, 2), N),
    "max_pool wide": (lambda: F.max_pool2d(X, 3, stride=2, padding=1), 2 * 4 * 4 * 4 * 9),
    "max_pool indices": (lambda: F.max_pool2d(X, (2, 4), return_indices=True), N),
    "avg_pool": (lambda: F.avg_pool2d(X, 2), N),
    "adaptive": (lambda: F.adaptive_avg_pool2d(X, 2), N),
    "adaptive overlapping": (lambda: F.adaptive_avg_pool1d(meta(1, 3, 8), 3), 3 * (3 + 4 + 3)),
    "embedding": (lambda: F.embedding(meta(3, dtype=torch.int64), meta(9, 5)), 0),
    "view": (lambda: X.view(-1), 0),
    "transpose": (lambda: X.transpose(0, 1), 0),
    "getitem": (lambda: X[0, :, None], 0),
    "cat": (lambda: torch.cat([X, X]), 0),
    "zeros": (lambda: torch.zeros(3, device="meta"), 0),
    "cast": (lambda: X.half(), 0),
    "dropout off": (lambda: F.dropout(X, 0.5, training=False), 0),
    "dropout on": (lambda: F.dropout(X, 0.5, training=True), N),
    "bilinear upsampling": (lambda: F.interpolate(X, scale_factor=2, mode="bilinear"), 8 * 4 * N),
    "nearest upsampling": (lambda: F.interpolate(X, scale_factor=2), 0),
    "scatter_add": (lambda: meta(5).scatter_add_(0, meta(3, dtype=torch.int64), meta(3)), 3),
    "cross_entropy": (lambda: F.cross_entropy(meta(6, 10), meta(6, dtype=torch.int64)), 5 * 60 + 6),
    "fft": (lambda: torch.fft.fft(meta(3, 16, dtype=torch.complex64)), 5 * 3 * 16 * 4),
    "rfft": (lambda: torch.fft.rfft(meta(3, 16)), 5 * 3 * 16 * 4 // 2),
    "cholesky": (lambda: torch.linalg.cholesky(meta(6, 6)), 6**3 // 3),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_one_rule_each(name):
    function, expected = SIMPLE[name]
    total, done = counted(function)
    assert (total, done) == (expected, 0)


def test_bags_add_every_row_they_look_up():
    assert counted(nn.EmbeddingBag(10, 4), torch.tensor([[1, 2, 3], [4, 5, 6]])) == (6 * 4, 0)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_nested_tensors_count_their_elements_or_are_unknown():
    nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(5, 4)])
    layer = nn.Linear(4, 3, bias=False)
    trace = tl.trace(lambda x: F.relu(layer(x)).softmax(-1), (nested,))
    found = {op.type: f for op, f in zip(trace.ops, flops(trace), strict=True) if op.kind == "call"}
    assert (found["linear"], found["relu"], found["softmax"]) == (2 * 7 * 4 * 3, 7 * 3, None)


def test_unknown_stays_unknown():
    trace = tl.trace(lambda x: torch.linalg.svd(x)[1] + 1, torch.ones(3, 3))
    assert [f for op, f in zip(trace.ops, flops(trace), strict=True) if op.type == "svd"] == [None]
    assert trace.totals.unknown_flops == 1
    assert trace.totals.flops == 3


def test_a_function_of_the_users_is_not_taken_for_torchs():
    @torch.library.custom_op("torchlens_tests::relu", mutates_args=())
    def relu(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    trace = tl.trace(lambda x: torch.ops.torchlens_tests.relu(x), torch.ones(3))
    assert [f for op, f in zip(trace.ops, flops(trace), strict=True) if op.type == "relu"] == [None]


def test_what_is_no_call_has_no_count():
    trace = tl.trace(nn.BatchNorm1d(3).eval(), torch.ones(2, 3))
    assert all(f is None for op, f in zip(trace.ops, flops(trace), strict=True) if op.kind != "call")


def test_counting_leaves_torch_as_it_is():
    program = """
import sys, torch, torchlens as tl
x = torch.ones(2, 2)
seed = torch.manual_seed
trace = tl.trace(lambda x: (torch.einsum("ij,jk,kl->il", x, x, x), torch.linalg.svd(x)), (x,))
assert trace.totals.macs == 16
assert torch.manual_seed is seed
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_ops_layers_and_totals_tell_the_same():
    trace = tl.trace(nn.Sequential(nn.Linear(4, 6), nn.ReLU()), torch.ones(3, 4))
    linear, relu = (op for op in trace.ops if op.kind == "call")
    assert (linear.flops, linear.macs, relu.flops, relu.macs) == (2 * 72 + 18, 72, 18, 0)
    assert (linear.layer.total_flops, linear.layer.total_macs) == (2 * 72 + 18, 72)
    assert (trace.totals.flops, trace.totals.macs) == (2 * 72 + 18 + 18, 72)
