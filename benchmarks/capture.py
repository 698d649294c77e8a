"""Cost of recording, as a ratio to the plain forward measured in the same run.

    python benchmarks/capture.py [--rounds 15] [--only NAME]

Plain forward and trace take turns, one thread; the ratio is of the two minima.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import torch

import torchlens as tl
from torchlens.demo.models import build_gpt, build_resnet, build_rnn_loop

Case = tuple[torch.nn.Module, torch.Tensor]


def cases() -> dict[str, Callable[[], Case]]:
    """The four measured models: two real sizes, two that are all overhead."""
    return {
        "ResNet-18 @224": lambda: (build_resnet(layers=(2, 2, 2, 2)), torch.randn(1, 3, 224, 224)),
        "GPT-2 small, 64 tokens": lambda: (
            build_gpt(width=768, layers=12, heads=12, vocabulary=50257),
            torch.randint(0, 50257, (1, 64)),
        ),
        "tiny GPT, width 32": lambda: (
            build_gpt(width=32, layers=12, heads=4, vocabulary=100),
            torch.randint(0, 100, (1, 16)),
        ),
        "RNN loop, 200 steps": lambda: (build_rnn_loop(width=16), torch.randn(1, 200, 16)),
    }


def timed(function: Callable[[], Any]) -> float:
    """Seconds of one call."""
    gc.collect()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(case: Case, *, rounds: int, train: bool, **options: Any) -> tuple[float, float]:
    """Minimum of the plain forward and of the trace, taken in turns."""
    model, x = case
    model.train(train)
    plain = traced = float("inf")

    def run_plain() -> None:
        with torch.set_grad_enabled(train):
            model(x)

    def run_traced() -> None:
        with torch.set_grad_enabled(train):
            tl.trace(model, x, **options)

    for _ in range(3):
        run_plain()
        run_traced()
    for _ in range(rounds):
        plain = min(plain, timed(run_plain))
        traced = min(traced, timed(run_traced))
    return plain, traced


def main() -> None:
    """Print one row per model and option."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    modes: dict[str, tuple[bool, dict[str, Any]]] = {
        "values kept": (False, {}),
        "save=False": (False, {"save": False}),
        "training, saved for backward": (True, {"saved_for_backward": True}),
    }
    print(f"{'model':26}{'mode':32}{'plain':>10}{'trace':>10}{'ratio':>8}")
    for name, build in cases().items():
        if chosen.only.lower() not in name.lower():
            continue
        case = build()
        for mode, (train, options) in modes.items():
            plain, traced = measure(case, rounds=chosen.rounds, train=train, **options)
            print(f"{name:26}{mode:32}{plain * 1e3:8.2f}ms{traced * 1e3:8.2f}ms{traced / plain:8.2f}")


if __name__ == "__main__":
    main()
