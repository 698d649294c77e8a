"""Attention in its many spellings, and what is none."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import torchlens as tl
from torchlens.analysis.attention import attention

X = torch.randn(2, 6, 16)
Y = torch.randn(2, 9, 16)


def of(model, *args):
    return attention(tl.trace(model, args or (X,)))


class Projected(nn.Module):
    """Projections to q, k, v around a core; heads split as given."""

    def __init__(self, core, heads=4, kv_heads=None):
        super().__init__()
        kv = kv_heads or heads
        self.core, self.heads, self.kv_heads = core, heads, kv
        self.wq, self.wk, self.wv, self.wo = (
            nn.Linear(16, 16),
            nn.Linear(16, 4 * kv),
            nn.Linear(16, 4 * kv),
            nn.Linear(16, 16),
        )

    def forward(self, x, y=None):
        y = x if y is None else y
        q = self.wq(x).view(x.shape[0], -1, self.heads, 4).transpose(1, 2)
        k, v = (w(y).view(y.shape[0], -1, self.kv_heads, 4).transpose(1, 2) for w in (self.wk, self.wv))
        return self.wo(self.core(q, k, v).transpose(1, 2).reshape(x.shape[0], -1, 16))


def plain(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1), -1) @ v


def scaled_and_masked(q, k, v):
    scores = torch.matmul(q, k.transpose(-2, -1)) / 2.0
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    scores = scores.masked_fill(~mask, float("-inf"))
    return torch.matmul(F.dropout(F.softmax(scores, dim=-1), 0.1), v)


def biased_in_float(q, k, v):
    scores = (q * 0.5) @ k.mT + torch.zeros(q.shape[-2], k.shape[-2])
    return scores.float().softmax(-1).to(v.dtype).matmul(v)


def einsum(q, k, v):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * 0.5
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), v)


def einsum_keys_first(q, k, v):
    scores = torch.einsum("bhjd,bhid->bhij", k, q)
    return torch.einsum("bhjd,bhij->bhid", v, scores.softmax(dim=-1))


def transposed_scores(q, k, v):
    weights = torch.softmax(k @ q.mT, dim=-2)
    return (v.mT @ weights).mT


def bmm(q, k, v):
    b, h, n, d = q.shape
    q, k, v = (t.reshape(b * h, -1, d) for t in (q, k, v))
    return torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v).view(b, h, n, d)


def baddbmm(q, k, v):
    b, h, n, d = q.shape
    q, k, v = (t.reshape(b * h, -1, d) for t in (q, k, v))
    bias = torch.zeros(b * h, n, k.shape[1])
    scores = torch.baddbmm(bias, q, k.transpose(1, 2), beta=1.0, alpha=0.5)
    return torch.bmm(scores.softmax(-1), v).view(b, h, n, d)


def soft_capped(q, k, v):
    scores = torch.tanh((q @ k.mT) / 30.0) * 30.0
    return scores.softmax(-1) @ v


def with_sink(q, k, v):
    scores = q @ k.mT
    scores = torch.cat([scores, torch.zeros(*scores.shape[:-1], 1)], dim=-1)
    return scores.softmax(-1)[..., :-1] @ v


def less_the_largest(q, k, v):
    scores = q @ k.mT
    scores = scores - scores.max(-1, keepdim=True).values
    return scores.softmax(-1) @ v


COMPOSED = [
    plain, scaled_and_masked, biased_in_float, einsum, einsum_keys_first, transposed_scores, bmm,
    baddbmm, soft_capped, with_sink, less_the_largest,
]  # fmt: skip


def weights_above(edge, depth=12):
    """Addresses of the parameters of the nearest op above that has any."""
    op = edge.parent
    for _ in range(depth):
        if op.params:
            return {p.address for p in op.params}
        op = op.parents[0]
    return set()


@pytest.mark.parametrize("core", COMPOSED, ids=lambda c: c.__name__)
@pytest.mark.parametrize("args", [(X,), (X, Y)], ids=["self", "cross"])
def test_composed_attention(core, args):
    (site,) = of(Projected(core), *args)
    assert (site.form, site.relation) == ("composed", "self" if len(args) == 1 else "cross")
    assert {"wq.weight", "wq.bias"} == weights_above(site.q)
    assert {"wk.weight", "wk.bias"} == weights_above(site.k)
    assert {"wv.weight", "wv.bias"} == weights_above(site.v)
    assert site.softmax.type == "softmax"
    assert site.q.child is site.k.child is site.scores
    assert site.v.child is site.output
    assert (site.q_length, site.k_length) == (6, args[-1].shape[1])
    assert site.scores.step < site.softmax.step < site.output.step
    assert site.ops[0] is site.scores
    assert site.ops[-1] is site.output
    assert site.softmax in site.ops
    if core not in (bmm, baddbmm):
        assert (site.heads, site.kv_heads) == (4, 4)


@pytest.mark.parametrize("args", [(X,), (X, Y)], ids=["self", "cross"])
def test_fused_attention(args):
    (site,) = of(Projected(F.scaled_dot_product_attention), *args)
    assert (site.form, site.relation) == ("fused", "self" if len(args) == 1 else "cross")
    assert [weights_above(e) for e in (site.q, site.k, site.v)] == [
        {f"w{r}.weight", f"w{r}.bias"} for r in "qkv"
    ]
    assert (site.heads, site.kv_heads, site.q_length, site.k_length) == (4, 4, 6, args[-1].shape[1])
    assert site.mask is None


def test_fused_attention_by_keyword_and_with_mask():
    def core(q, k, v):
        return F.scaled_dot_product_attention(value=v, key=k, query=q, attn_mask=torch.zeros(6, 6))

    (site,) = of(Projected(core))
    assert weights_above(site.v) == {"wv.weight", "wv.bias"}
    assert site.mask.parent.type == "zeros"
    assert set(site.roles.values()) == {"q", "k", "v", "mask", "output"}


def repeated(q, k, v):
    k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))
    return plain(q, k, v)


def expanded(q, k, v):
    b, h, n, d = k.shape
    k, v = (t[:, :, None].expand(b, h, 2, n, d).reshape(b, 2 * h, n, d) for t in (k, v))
    return plain(q, k, v)


def grouped(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


@pytest.mark.parametrize("core", [repeated, expanded, grouped])
def test_grouped_queries(core):
    (site,) = of(Projected(core, kv_heads=2))
    assert (site.heads, site.kv_heads) == (4, 2)
    assert weights_above(site.k) == {"wk.weight", "wk.bias"}


@pytest.mark.parametrize("need_weights", [True, False])
def test_opened_multihead_attention(need_weights):
    layer = nn.MultiheadAttention(16, 4, batch_first=True)

    def model(x):
        return layer(x, x, x, need_weights=need_weights)[0]

    (site,) = of(model)
    assert (site.form, site.relation) == ("composed" if need_weights else "fused", "self")


def test_windows_folded_into_the_batch():
    inner = Projected(plain)

    def windowed(x):  # (2, 6, 16): two windows of three
        return inner(x.view(4, 3, 16)).view(2, 6, 16)

    (site,) = of(windowed)
    assert (site.q_length, site.k_length, site.heads, site.relation) == (3, 3, 4, "self")


def test_sliding_window_by_mask():
    def core(q, k, v):
        near = torch.ones(6, 6).triu(-1).tril(1).bool()
        return torch.where(near, q @ k.mT, torch.tensor(-1e9)).softmax(-1) @ v

    (site,) = of(Projected(core))
    assert site.relation == "self"


def test_one_query_that_is_a_parameter():
    class Pool(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.k, self.v = nn.Parameter(torch.ones(1, 16)), nn.Linear(16, 16), nn.Linear(16, 16)

        def forward(self, x):
            return torch.softmax(self.query @ self.k(x).mT, -1) @ self.v(x)

    (site,) = of(Pool())
    assert (site.q_length, site.k_length, site.relation) == (1, 6, "cross")
    assert site.q is None
    assert "q" not in site.roles.values()


def test_decoding_one_token_against_a_cache():
    inner = Projected(plain)

    def model(x, past):
        def core(q, k, v):
            return plain(q, torch.cat([past, k], dim=2), torch.cat([past, v], dim=2))

        inner.core = core
        return inner(x[:, :1])

    (site,) = of(model, X, torch.randn(2, 4, 5, 4))
    assert (site.q_length, site.k_length, site.relation) == (1, 6, "self")


def test_several_sites_in_order():
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(
                [Projected(plain), Projected(F.scaled_dot_product_attention), Projected(einsum)]
            )

        def forward(self, x):
            for layer in self.layers:
                x = x + layer(x)
            return x

    found = of(Stack())
    assert [site.form for site in found] == ["composed", "fused", "composed"]
    assert [site.call.module.address for site in found] == ["layers.0", "layers.1", "layers.2"]


def test_nothing_needs_to_be_kept():
    trace = tl.trace(Projected(scaled_and_masked), X, save=False)
    assert len(attention(trace)) == 1


# -- what is no attention ------------------------------------------------------------------------------


class Weighted(nn.Module):
    def __init__(self, body, *shapes):
        super().__init__()
        self.body = body
        self.w = nn.ParameterList(torch.randn(shape) for shape in shapes)

    def forward(self, x):
        return self.body(x, *self.w)


def experts(x, gate, up):
    """A mixture: weights of experts times what each expert made of the token."""
    outs = torch.einsum("bnd,edf->bnef", x, up)
    return torch.einsum("bne,bnef->bnf", (x @ gate).softmax(-1), outs)


def experts_by_matmul(x, gate, up):
    outs = torch.stack([x @ w for w in up], dim=2)
    return ((x @ gate).softmax(-1).unsqueeze(2) @ outs).squeeze(2)


def experts_with_made_keys(x, gate, up):
    """The router's keys are made by the model, yet each token has its own values."""
    keys = torch.tanh(gate).mT * 2
    outs = torch.einsum("bnd,edf->bnef", x, up)
    return torch.einsum("bne,bnef->bnf", torch.einsum("bnd,ed->bne", x, keys).softmax(-1), outs)


NOT_ATTENTION = {
    "classifier head": Weighted(lambda x, w: torch.softmax(x @ w, -1), (16, 10)),
    "classifier with tied weights": Weighted(lambda x, w: torch.softmax(x @ w, -1) @ w.t(), (16, 10)),
    "linear head and linear": Weighted(
        lambda x, w, v: F.linear(torch.softmax(F.linear(x, w), -1), v), (10, 16), (3, 10)
    ),
    "memory of weights": Weighted(lambda x, k, v: torch.softmax(x @ k, -1) @ v, (16, 7), (7, 16)),
    "clusters that are weights": Weighted(lambda x, w: torch.softmax(x @ w.t(), -1) @ x[:, :3], (3, 16)),
    "gate": Weighted(lambda x, w: torch.softmax(x @ w, -1) * x, (16, 16)),
    "gate from two activations": Weighted(lambda x: torch.softmax(x @ (x.mT @ x), -1) * x),
    "similarities alone": Weighted(lambda x: torch.softmax(x @ x.mT, -1)),
    "mixture of experts": Weighted(experts, (16, 3), (3, 16, 8)),
    "mixture by matmul": Weighted(experts_by_matmul, (16, 3), (3, 16, 8)),
    "mixture with made keys": Weighted(experts_with_made_keys, (16, 3), (3, 16, 8)),
    "softmax over queries": Weighted(lambda x: torch.softmax(x @ x.mT, 0) @ x),
    "products without softmax": Weighted(lambda x: (x @ x.mT) @ x),
}


@pytest.mark.parametrize("name", NOT_ATTENTION)
def test_no_false_hit(name):
    assert of(NOT_ATTENTION[name]) == []
