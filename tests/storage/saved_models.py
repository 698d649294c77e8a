"""Models that between them have every kind of fact that a file has to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

import torchlens as tl


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        out += x
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.Sequential(Residual(8), Residual(8))
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(batch, length, width)))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.position = nn.Embedding(11, 8), nn.Embedding(6, 8)
        self.blocks = nn.ModuleList([Block(8), Block(8)])
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> dict[str, Any]:
        x = self.embed(ids) + self.position(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return {"logits": self.head(x), "last": (x[:, -1], None, 3)}


class Loop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.LSTMCell(4, 6), nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = torch.zeros(x.shape[0], 6)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        return self.out(h)


class Branching(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0 and x.max() > 0:
            x = torch.relu(x)
        else:
            x = x - 1
        while x.sum() < 20:
            x = x * 2
        return x / float(x.abs().max())


class Views(nn.Module):
    """Views, expanded tensors, writes through aliases, a buffer that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.seen.add_(1)
        y = x.clone()
        row = y[1]
        y[0, 1:3] = 5.0
        row.mul_(2)
        wide = row[None].expand(50, -1)
        cache = torch.zeros(8, y.shape[1])
        for step in range(3):
            cache[step] = y[step % 2]
        windows = y.unfold(1, 2, 1)
        z = y.masked_fill_(y > 3, float("-inf"))
        return (
            wide + 1,
            cache.view(-1),
            windows.sum(-1),
            torch.view_as_complex(cache.reshape(-1, 2)).conj(),
            z,
        )


class Reshaped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0] = 1
        z = y.as_strided((3, 2), (1, 3), 1)
        y.t_()
        return y[:2] + z[:2]


class Failing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 5), nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x))


def failed() -> tl.Trace:
    try:
        tl.trace(Failing(), torch.randn(2, 4))
    except RuntimeError as error:
        found: tl.Trace = error.trace  # type: ignore[attr-defined]
        return found
    raise AssertionError


class Case(NamedTuple):
    make: Callable[[], tl.Trace]
    edit: Any = None


IDS = torch.arange(12).reshape(2, 6) % 11

CASES = {
    "resnet": Case(lambda: tl.trace(ResNet(), torch.randn(2, 3, 6, 6)), tl.func("relu")),
    "gpt": Case(lambda: tl.trace(GPT(), IDS), tl.func("gelu")),
    "gpt_eval": Case(lambda: tl.trace(GPT().eval(), IDS, repeats=2, audit=True), tl.func("layer_norm")),
    "loop": Case(lambda: tl.trace(Loop(), torch.randn(2, 4, 4)), tl.func("getitem")),
    "branch": Case(lambda: tl.trace(Branching(), torch.rand(3, 4))),
    "views": Case(lambda: tl.trace(Views(), torch.randn(2, 8)), tl.func("clone")),
    "reshaped": Case(lambda: tl.trace(Reshaped(), torch.randn(2, 8))),
    "failed": Case(failed),
    "fake": Case(lambda: tl.trace(ResNet(), torch.randn(2, 3, 6, 6), fake=True)),
    "unkept": Case(lambda: tl.trace(GPT(), IDS, save=False)),
    "selected": Case(lambda: tl.trace(ResNet(), torch.randn(2, 3, 6, 6), save=tl.func("relu"))),
    "checked": Case(lambda: tl.trace(Views(), torch.randn(2, 8), check_finite="capture")),
}
