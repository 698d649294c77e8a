"""The built-in models: small, complete, random weights, plain torch."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class BasicBlock(nn.Module):
    """Residual block of two 3x3 convolutions (He et al., 2016)."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or width_in != width:
            self.downsample = nn.Sequential(
                nn.Conv2d(width_in, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Two convolutions beside the shortcut."""
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)  # type: ignore[no-any-return]


class ResNet(nn.Module):
    """Residual network for images; ``layers=(2, 2, 2, 2)`` and width 64 is ResNet-18."""

    def __init__(self, *, layers: tuple[int, ...], width: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        widths = [width * 2**i for i in range(len(layers))]
        stages = []
        for stage, (count, size) in enumerate(zip(layers, widths)):
            first = BasicBlock(widths[max(stage - 1, 0)], size, 1 if stage == 0 else 2)
            stages.append(nn.Sequential(first, *(BasicBlock(size, size, 1) for _ in range(count - 1))))
        self.stages = nn.ModuleList(stages)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of shape ``(N, classes)`` for images ``(N, 3, H, W)``."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in self.stages:
            x = stage(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Causal self-attention over ``(N, T, width)``."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend to earlier positions."""
        n, t, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (a.view(n, t, self.heads, width // self.heads).transpose(1, 2) for a in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(n, t, width))  # type: ignore[no-any-return]


class MLP(nn.Module):
    """Two linear layers with a GELU between."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU()
        self.proj = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Transform each position."""
        return self.proj(self.gelu(self.fc(x)))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Pre-norm transformer block (Radford et al., 2019)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = MLP(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention and MLP, each added to its input."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))  # type: ignore[no-any-return]


class GPT(nn.Module):
    """Decoder-only language model: token ids ``(N, T)`` to logits ``(N, T, vocabulary)``."""

    def __init__(self, *, width: int, layers: int, heads: int, vocabulary: int, context: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits of the next token at each position."""
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))  # type: ignore[no-any-return]


class LSTMLoop(nn.Module):
    """An LSTM cell run over a sequence step by step, with a linear head on the last state."""

    def __init__(self, *, width: int, hidden: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(width, hidden)
        self.head = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Prediction ``(N, width)`` from a sequence ``(N, T, width)``."""
        h = x.new_zeros(x.shape[0], self.cell.hidden_size)
        c = torch.zeros_like(h)
        for step in range(x.shape[1]):
            h, c = self.cell(x[:, step], (h, c))
        return self.head(h)  # type: ignore[no-any-return]


class RNNLoop(nn.Module):
    """An Elman network written out: ``h = tanh(W x + U h)`` per step."""

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = nn.Linear(width, width)
        self.state = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Last state ``(N, width)`` of a sequence ``(N, T, width)``."""
        h = torch.zeros(x.shape[0], self.width)
        for step in range(x.shape[1]):
            h = torch.tanh(self.input(x[:, step]) + self.state(h))
        return h


class Branching(nn.Module):
    """Takes one of two paths by the sign of its input's sum."""

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.positive = nn.Linear(width, width)
        self.negative = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores ``(N, 2)``."""
        if x.sum() > 0:
            y = torch.relu(self.positive(x))
        else:
            y = torch.tanh(self.negative(x)) * 0.5
        return self.head(y)  # type: ignore[no-any-return]


class LogOfNegative(nn.Module):
    """Divides by a norm and takes logarithms without a guard, so that NaN and -Inf appear."""

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Log-probabilities ``(N, 3)``, wrong on purpose."""
        h = self.encoder(x)
        scores = torch.log(h) / h.norm(dim=-1, keepdim=True)
        return torch.log_softmax(self.head(scores), dim=-1)


def build_resnet(*, layers: tuple[int, ...] = (2, 2, 2, 2), width: int = 64, classes: int = 1000) -> ResNet:
    """A ResNet in evaluation mode."""
    return ResNet(layers=layers, width=width, classes=classes).eval()


def build_gpt(
    *, width: int = 64, layers: int = 4, heads: int = 4, vocabulary: int = 1000, context: int = 1024
) -> GPT:
    """A GPT in evaluation mode."""
    return GPT(width=width, layers=layers, heads=heads, vocabulary=vocabulary, context=context).eval()


def build_rnn_loop(*, width: int = 16) -> RNNLoop:
    """An Elman loop in evaluation mode; the number of steps is that of its input."""
    return RNNLoop(width=width).eval()


def build_lstm_loop(*, width: int = 8, hidden: int = 16) -> LSTMLoop:
    """An LSTM cell loop in evaluation mode."""
    return LSTMLoop(width=width, hidden=hidden).eval()
