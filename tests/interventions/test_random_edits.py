"""Random programs of views, writes, draws and plain calls: every op edited, against plain edits."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F
from plain import EditCall, edited

import torchlens as tl


def program(seed):
    """A forward of 14 random steps over a growing pool of tensors that share memory."""

    def run(x):
        rng = random.Random(seed)
        pool = [x, x * 1.5, torch.zeros(4, 4)]
        for _ in range(14):
            kind, a, b = rng.randrange(14), rng.choice(pool), rng.choice(pool)
            if kind == 0:
                pool.append(a[:2])
            elif kind == 1:
                pool.append(a.t())
            elif kind == 2:
                a.add_(0.5)
            elif kind == 3:
                a.mul_(0.9)
            elif kind == 4:
                a[rng.randrange(a.shape[0])] = b.mean()
            elif kind == 5:
                pool.append(a.sum() * 0.1 + b)
            elif kind == 6:
                pool.append(F.relu(a, inplace=True))
            elif kind == 7:
                pool.append(F.dropout(a, 0.3, True))
            elif kind == 8:
                pool.extend(a.chunk(2, 0))
            elif kind == 9:
                pool.append(torch.sin(a))
            elif kind == 10:
                pool.append(a.reshape(-1).view(a.shape))
            elif kind == 11:
                a.copy_(torch.tanh(a) * 1.1)
            elif kind == 12:
                pool.append(torch.rand(2, 2).sum() + a)
            elif a.shape == b.shape and a.is_contiguous() and b.is_contiguous():
                torch.add(a, 1.0, out=b)
        return (*(tensor.clone() for tensor in pool), pool[-1])

    return run


def change(value, op=None):
    return value * 2 + 1


def values(trace):
    """Copies of every value of a trace."""
    found = []
    for op in trace.ops:
        out = op.out if isinstance(op.out, tuple) else (op.out,)
        found.append([tensor.clone() for tensor in out if tensor is not None])
    return found


@pytest.mark.parametrize("seed", range(24))
def test_every_op_of_a_random_program(seed):
    forward = program(seed)
    x = torch.randn(4, 4)
    torch.manual_seed(seed)
    trace = tl.trace(forward, x.clone())
    before = values(trace)
    seen = {}
    for op in [op for op in trace.ops if op.kind == "call"]:
        number = seen[op.func_name] = seen.get(op.func_name, 0) + 1
        truth = edited(forward, (x.clone(),), EditCall(op.func_name, number, change), seed=seed)
        fork = trace.fork().do(tl.label(op.label, output=0), change)
        for ours, theirs, out in zip(fork.output, truth, fork.outputs):
            assert torch.equal(ours, theirs), op.label
            assert torch.equal(out.out, theirs), op.label
    for op, ours, theirs in zip(trace.ops, values(trace), before):
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs)), f"the trace's {op.label} changed"


@pytest.mark.parametrize("seed", range(100, 112))
def test_two_edits_of_a_random_program_and_its_rerun(seed):
    forward = program(seed)
    x = torch.randn(4, 4)
    torch.manual_seed(seed)
    trace = tl.trace(forward, x.clone())
    rng = random.Random(seed)
    calls = [op for op in trace.ops if op.kind == "call"]
    counts = [sum(o.func_name == op.func_name for o in calls[: i + 1]) for i, op in enumerate(calls)]
    for _ in range(6):
        chosen = rng.sample(range(len(calls)), 2)
        fork = trace.fork()
        for i in chosen:
            fork.do(tl.label(calls[i].label, output=0), change)
        first, second = ((calls[i].func_name, counts[i]) for i in chosen)
        truth = edited(forward, (x.clone(),), EditCall(*first, change, others=[second]), seed=seed)
        assert all(torch.equal(a, b) for a, b in zip(fork.output, truth)), [calls[i].label for i in chosen]
        torch.manual_seed(seed)
        fork.rerun(forward, x.clone())
        assert all(torch.equal(a, b) for a, b in zip(fork.output, truth)), "rerun"
        hit = [fork.call_index(next(op for op in fork.ops if op.edit is edit)) for edit in fork.edits]
        assert hit == chosen
