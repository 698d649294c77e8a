"""The demo: all nine views of built-in models, from real forward passes, and a page to leaf through."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from torchlens.demo.models import (
    Branching,
    LogOfNegative,
    build_gpt,
    build_lstm_loop,
    build_resnet,
)
from torchlens.trace.trace import Trace
from torchlens.tracing import trace


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture of the demo."""

    name: str
    sentence: str
    trace: Callable[[], Trace]
    settings: dict[str, Any]


def trace_resnet() -> Trace:
    """An image through a ResNet-18."""
    return trace(build_resnet(), torch.randn(1, 3, 224, 224), warmup=1, repeats=3)


def trace_training_resnet() -> Trace:
    """A batch through a narrow ResNet in training mode, so that autograd saves tensors."""
    return trace(build_resnet(width=16, classes=10).train(), torch.randn(2, 3, 64, 64))


def trace_gpt() -> Trace:
    """Sixteen tokens through a GPT of twelve blocks."""
    return trace(build_gpt(layers=12), torch.randint(0, 1000, (1, 16)))


def trace_lstm() -> Trace:
    """Four steps of an LSTM cell."""
    return trace(build_lstm_loop(), torch.randn(1, 4, 8))


def trace_branch() -> Trace:
    """A model that takes one of two paths."""
    return trace(Branching(width=8), torch.randn(1, 8))


def trace_nan() -> Trace:
    """A model that takes the logarithm of negative numbers."""
    return trace(LogOfNegative(width=6), torch.randn(2, 6))


def trace_edited() -> Trace:
    """A GPT of two blocks in which one GELU is switched off."""
    from torchlens import func, in_module, zero

    clean = trace(build_gpt(layers=2), torch.randint(0, 1000, (1, 8)))
    edited = clean.fork("without the second GELU")
    edited.do(func("gelu") & in_module("h.1"), zero())
    _KEPT.append(clean)
    return edited


_KEPT: list[Trace] = []
"""Unedited traces, which forks refer to weakly and their pictures compare with."""

PLAIN = (
    Picture("resnet", "A ResNet-18, every op.", trace_resnet, {}),
    Picture("gpt", "A GPT of twelve blocks, equal blocks folded.", trace_gpt, {"fold_repeats": True}),
    Picture("lstm-loop", "An LSTM cell run four times, passes merged.", trace_lstm, {"rolled": True}),
    Picture("branch", "A branch on data: which way it went.", trace_branch, {}),
)
VIEWS = (
    Picture("overview", "What is this model? A GPT at a glance.", trace_gpt, {"view": "overview"}),
    Picture(
        "debug", "Where does it go wrong? The op that makes the first NaN.", trace_nan, {"view": "debug"}
    ),
    Picture("speed", "Where does the time go in a ResNet-18?", trace_resnet, {"view": "speed"}),
    Picture("memory", "What takes the memory while it trains?", trace_training_resnet, {"view": "memory"}),
    Picture("compute", "Where are the FLOPs of a ResNet-18?", trace_resnet, {"view": "compute"}),
    Picture("dims", "How do the tensors change size?", trace_resnet, {"view": "dims"}),
    Picture("transformer", "How is the block wired?", trace_gpt, {"view": "transformer"}),
    Picture("sequence", "What happens step by step?", trace_lstm, {"view": "sequence"}),
    Picture("interventions", "What did the edit change?", trace_edited, {"view": "interventions"}),
)


def write_gallery(folder: Path, *, pictures: tuple[Picture, ...] = PLAIN + VIEWS) -> Path:
    """Draw every picture into ``folder`` and write a page that shows them; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    traces: dict[Callable[[], Trace], Trace] = {}
    for picture in pictures:
        if picture.trace not in traces:
            with torch.set_grad_enabled(picture.trace is trace_training_resnet):
                traces[picture.trace] = picture.trace()
        traces[picture.trace].draw(folder / f"{picture.name}.svg", **picture.settings)
    page = folder / "index.html"
    page.write_text(_page(pictures), encoding="utf-8")
    return page.resolve()


def _page(pictures: tuple[Picture, ...]) -> str:
    figures = "\n".join(
        f'<figure><a href="{p.name}.svg"><img src="{p.name}.svg" alt="{html.escape(p.sentence)}"></a>'
        f"<figcaption><b>{p.name}</b> {html.escape(p.sentence)}</figcaption></figure>"
        for p in pictures
    )
    return _TEMPLATE.replace("FIGURES", figures)


_TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>torchlens demo</title>
<meta name="viewport" content="width=device-width">
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); gap: 1.5rem }
figure { margin: 0; border: 1px solid #ddd; border-radius: 8px; padding: 1rem; background: #fff }
img { width: 100%; height: 26rem; object-fit: contain; object-position: top }
figcaption b { display: block }
</style></head><body>
<h1>torchlens: built-in models, real forward passes</h1>
<main>
FIGURES
</main></body></html>
"""
