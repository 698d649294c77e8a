"""Cost of a replay against the forward of the affected ops, of a diff, and of a fork's memory.

    python benchmarks/interventions.py [--rounds 7]

The forward of the affected ops is measured as the same modules run plainly, one thread.
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


def best(function: Callable[[], Any], rounds: int) -> float:
    """Least seconds of several calls."""
    found = float("inf")
    for _ in range(rounds):
        gc.collect()
        start = time.perf_counter()
        function()
        found = min(found, time.perf_counter() - start)
    return found


def affected(trace: tl.Trace, fork: tl.Trace) -> Callable[[], None]:
    """Runs the calls that an edit affects plainly, from their recorded arguments."""
    changed = [
        (op.record.func, ours.args, ours.kwargs)
        for op, ours in zip(trace.ops, fork.ops)
        if op.record is not None and op.records[0] is not ours.records[0] and ours.edit is None
    ]

    def run() -> None:
        with torch.no_grad():
            for func, args, kwargs in changed:
                func(*args, **kwargs)

    return run


def replay(name: str, model: torch.nn.Module, x: torch.Tensor, site: Any, rounds: int) -> None:
    trace = tl.trace(model, x)
    fork = trace.fork().do(site, tl.scale(0.5))
    plain = best(affected(trace, fork), rounds)
    edited = best(lambda: trace.fork().do(site, tl.scale(0.5)), rounds)
    limit = 1.5 * plain + 5e-3
    held = "holds" if edited <= limit else "FAILS"
    numbers = f"affected {plain * 1e3:8.2f}  replay {edited * 1e3:8.2f}  limit {limit * 1e3:8.2f} ms"
    print(f"{name:34} {numbers}  {held}")


def memory(trace: tl.Trace, fork: tl.Trace) -> tuple[float, float]:
    """MB of kept outputs of the trace, and MB that only the fork holds."""

    def held(one: tl.Trace) -> dict[int, int]:
        records = [r for op in one.ops if op.kind == "call" for r in op.records if r.kept is not None]
        return {r.kept.untyped_storage()._cdata: r.kept.untyped_storage().nbytes() for r in records}

    ours, theirs = held(fork), held(trace)
    return sum(theirs.values()) / 1e6, sum(size for key, size in ours.items() if key not in theirs) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    gpt = build_gpt(width=768, layers=12, heads=12, vocabulary=50257)
    ids = torch.randint(0, 50257, (1, 64))
    image = torch.randn(1, 3, 224, 224)
    replay("GPT-2 small, first block", gpt, ids, tl.module("h.0"), rounds)
    replay("GPT-2 small, last block", gpt, ids, tl.module("h.11"), rounds)
    replay("ResNet-18, first convolution", build_resnet(), image, tl.module("conv1"), rounds)
    replay("ResNet-18, last stage", build_resnet(), image, tl.module("stages.3"), rounds)
    rnn, steps = build_rnn_loop(width=16), torch.randn(1, 200, 16)
    replay("RNN loop, first of 200 steps", rnn, steps, tl.label("tanh_1_6:1"), rounds)
    tiny = build_gpt(width=32, layers=12, heads=4, vocabulary=100)
    replay("tiny GPT, first block", tiny, torch.randint(0, 100, (1, 16)), tl.module("h.0"), rounds)
    first, second = tl.trace(gpt, ids), tl.trace(gpt, torch.randint(0, 50257, (1, 64)))
    print(f"diff of two GPT-2 small traces: {best(lambda: tl.diff(first, second), rounds) * 1e3:.0f} ms")
    total, extra = memory(first, first.fork().do(tl.module("h.11"), tl.zero()))
    print(f"a fork of GPT-2 small edited in its last block: {extra:.1f} MB beside {total:.1f} MB shared")


if __name__ == "__main__":
    main()
