"""FLOPs of well-known networks, built here from torch.nn and run without memory."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import torchlens as tl
from torchlens.analysis.flops import macs

CLASS = {"conv2d", "linear", "scaled_dot_product_attention", "matmul"}


def giga(trace, types=CLASS):
    found = [m for op, m in zip(trace.ops, macs(trace), strict=True) if op.type in types]
    assert None not in found
    return sum(found) / 1e9


class Bottleneck(nn.Module):
    def __init__(self, cin, width, stride):
        super().__init__()
        cout = 4 * width
        self.c1, self.b1 = nn.Conv2d(cin, width, 1, bias=False), nn.BatchNorm2d(width)
        self.c2, self.b2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.c3, self.b3 = nn.Conv2d(width, cout, 1, bias=False), nn.BatchNorm2d(cout)
        self.down = (
            nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))
            if stride > 1 or cin != cout
            else nn.Identity()
        )

    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)))
        y = F.relu(self.b2(self.c2(y)))
        return F.relu(self.b3(self.c3(y)) + self.down(x))


def resnet50():
    stages, cin = [], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        stages.append(
            nn.Sequential(
                *(
                    Bottleneck(cin if i == 0 else 4 * width, width, stride if i == 0 else 1)
                    for i in range(count)
                )
            )
        )
        cin = 4 * width
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000),
    )  # fmt: skip


class Encoder(nn.Module):
    def __init__(self, width, heads, *, causal):
        super().__init__()
        self.n1, self.n2, self.heads, self.causal = nn.LayerNorm(width), nn.LayerNorm(width), heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 768, 16, 16)
        self.token, self.place = nn.Parameter(torch.zeros(1, 1, 768)), nn.Parameter(torch.zeros(1, 197, 768))
        self.blocks = nn.Sequential(*(Encoder(768, 12, causal=False) for _ in range(12)))
        self.norm, self.head = nn.LayerNorm(768), nn.Linear(768, 1000)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


class Gpt2(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, vocabulary=50257, places=1024):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(places, width)
        self.blocks = nn.Sequential(*(Encoder(width, heads, causal=True) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return F.linear(self.norm(self.blocks(x)), self.words.weight)


def on_meta(make, x):
    with torch.device("meta"):
        model = make().eval()
    return tl.trace(model, x.to("meta"))


def test_resnet50():
    trace = on_meta(resnet50, torch.empty(1, 3, 224, 224))
    assert giga(trace) == pytest.approx(4.089, abs=0.001)
    assert trace.totals.params == 25_557_032
    assert trace.totals.unknown_flops == 0


def test_resnet50_scales_with_the_batch():
    one = on_meta(resnet50, torch.empty(1, 3, 64, 64)).totals
    three = on_meta(resnet50, torch.empty(3, 3, 64, 64)).totals
    assert three.flops == 3 * one.flops
    assert three.macs == 3 * one.macs


def test_vit_b_16():
    trace = on_meta(Vit, torch.empty(1, 3, 224, 224))
    products, attention = giga(trace, {"conv2d", "linear"}), giga(trace, {"scaled_dot_product_attention"})
    assert products + attention == pytest.approx(17.56, abs=0.01)
    assert attention * 1e9 == 12 * 2 * 197 * 197 * 768
    assert trace.totals.unknown_flops == 0


@pytest.mark.parametrize("tokens", [1024, 100])
def test_gpt2_small_by_the_closed_formula(tokens):
    trace = on_meta(Gpt2, torch.empty(1, tokens, dtype=torch.int64))
    layer = 12 * tokens * 768 * 768 + 2 * tokens * tokens * 768
    assert trace.totals.macs == 12 * layer + tokens * 768 * 50257
    assert trace.totals.params == 124_439_808
    assert trace.totals.unknown_flops == 0


def test_the_flops_of_modules_add_up():
    trace = on_meta(resnet50, torch.empty(1, 3, 64, 64))
    top = next(call for call in trace.calls if call.parent is None)
    assert sum(int(op.flops) for child in top.children for op in child.ops) == trace.totals.flops
