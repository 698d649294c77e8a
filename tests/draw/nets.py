"""Tiny real models whose graphs one can count by hand."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

import torchlens as tl


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = (q @ k.transpose(-2, -1)) * 0.125
        return self.proj(scores.softmax(dim=-1) @ v)


class Block(nn.Module):
    """18 ops: 2 norms, 8 in attention (qkv, chunk, transpose, matmul, mul, softmax, matmul, proj), ..."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attn = Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attn(self.norm(x))
        return x + self.mlp(x)


OPS_PER_BLOCK = 14


class Stack(nn.Module):
    """``blocks`` equal blocks between an embedding and a head: 14 ops each and 2 more."""

    def __init__(self, blocks: int = 3, width: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 11, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Loop(nn.Module):
    """Four steps of ``tanh(a(x[t]) + b(h))``, then a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 5)
        self.b = nn.Linear(5, 5)
        self.out = nn.Linear(5, 2)

    def forward(self, x, h):
        for step in range(4):
            h = torch.tanh(self.a(x[step]) + self.b(h))
        return self.out(h)


class CellLoop(nn.Module):
    """A module of several ops that runs three times."""

    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Linear(4, 4)

        def forward(self, h):
            return torch.tanh(self.w(h)) + h

    def __init__(self) -> None:
        super().__init__()
        self.cell = CellLoop.Cell()

    def forward(self, h):
        for _ in range(3):
            h = self.cell(h)
        return h


class Residual(nn.Module):
    """A convolution with batch norm, a scalar, a difference whose order matters, and a leftover."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.register_buffer("shift", torch.ones(4, 1, 1))

    def forward(self, x):
        y = self.bn(self.conv(x))
        z = F.relu(y) * 0.5
        torch.zeros(3).sum()
        return torch.cat([z - y, y + self.shift], dim=1)


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        y = self.a(x)
        if y.sum() > 1e9:
            return y * 2
        return torch.relu(y)


class Broken(nn.Module):
    """The logarithm of negative numbers and a division by zero."""

    def forward(self, x):
        bad = torch.log(-x.abs() - 1)
        worse = x.abs().add(1) / 0
        return bad, worse, x + 1


class Failing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return torch.matmul(self.a(x), torch.zeros(7, 7))


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.free = nn.Linear(4, 4)
        self.fixed = nn.Linear(4, 4).requires_grad_(False)
        self.partly = nn.Linear(4, 4)
        self.partly.bias.requires_grad_(False)

    def forward(self, x):
        return self.partly(self.fixed(self.free(x)))


def stack(blocks: int = 3) -> tl.Trace:
    return tl.trace(Stack(blocks).eval(), torch.arange(10).reshape(2, 5))


def loop() -> tl.Trace:
    return tl.trace(Loop(), (torch.ones(4, 2, 3), torch.zeros(2, 5)))


def cell_loop() -> tl.Trace:
    return tl.trace(CellLoop(), torch.ones(2, 4))


def residual() -> tl.Trace:
    return tl.trace(Residual().eval(), torch.ones(2, 3, 6, 6))


def mlp() -> tl.Trace:
    return tl.trace(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.ones(2, 8))
