"""Times of the interactive page in headless Chromium, and the sizes of its file.

python benchmarks/page.py [NAME ...]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "web"))

from browser import Browser

import torchlens as tl
from torchlens.demo import models


class Step(nn.Module):
    """A block of 19 ops."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(8, 8), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        for k in range(7):
            h = torch.relu(h) + 0.1 * k
        return x + self.b(torch.tanh(self.a(h)))


def gpt(layers: int) -> tl.Trace:
    return tl.trace(models.build_gpt(layers=layers), torch.randint(0, 50, (1, 16)))


def gpt2(layers: int) -> tl.Trace:
    """GPT-2 of the transformers library: 45 ops a block."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=50, n_positions=32, n_embd=16, n_layer=layers, n_head=2)
    with torch.no_grad():
        return tl.trace(GPT2LMHeadModel(config).eval(), {"input_ids": torch.randint(0, 50, (1, 16))})


CASES: dict[str, Callable[[], tl.Trace]] = {
    "gpt-12": lambda: gpt(12),
    "gpt-96": lambda: gpt(96),
    "gpt2-12": lambda: gpt2(12),
    "gpt2-64": lambda: gpt2(64),
    "rnn-200": lambda: tl.trace(models.build_rnn_loop(), torch.randn(2, 200, 16)),
    "nested-19000": lambda: tl.trace(nn.Sequential(*(Step() for _ in range(1000))), torch.randn(2, 8)),
}

TOGGLES = """(() => {
  const times = [];
  for (const open of ['false', 'true', 'false', 'false']) {
    const found = document.querySelector(`.item[aria-expanded="${open}"]`);
    if (!found) continue;
    const start = performance.now();
    found.focus();
    found.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
    document.body.getBoundingClientRect();
    times.push(performance.now() - start);
  }
  return times;
})()"""


def measure(browser: Browser, name: str, folder: Path) -> None:
    """Write a page, open it, and open and close boxes."""
    trace = CASES[name]()
    ops, path = len(trace.ops), folder / f"{name}.html"
    start = time.process_time()
    trace.draw(path)
    written = time.process_time() - start
    page = browser.open(path.as_uri())
    ready = page.eval("performance.getEntriesByName('ready')[0].startTime")
    toggles = page.eval(TOGGLES)
    page.close()
    size = path.stat().st_size / 1e6
    slowest = f"{max(toggles):.0f} ms" if toggles else "nothing to open"
    print(
        f"{name:14} {ops:6} ops  {size:5.2f} MB  written {written:5.2f} s CPU  "
        f"ready {ready:5.0f} ms  open/close {slowest}"
    )


def main() -> None:
    """Measure the cases named, or all."""
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name in sys.argv[1:] or CASES:
                measure(browser, name, Path(folder))
    finally:
        browser.close()


if __name__ == "__main__":
    main()
