"""What cannot be seen is marked: as a constant, as lost, or by the audit."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys

import numpy as np
import torch
from harness import calls, examine, names, net, source_names, traced
from torch import Tensor, nn

EAGER = """
import warnings; warnings.simplefilter("ignore")
import torch, torchlens as tl
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from torch._higher_order_ops.while_loop import while_loop
layer = nn.Linear(3, 3)
compiled = torch.compile(layer)
sine = torch.compile(lambda x: x.sin() * 2)
x = torch.randn(2, 3)
q = torch.randn(1, 2, 8, 4)
def loop(x):
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (torch.tensor(0), x))[1]
def branch(x):
    return torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y * 3, (x,))
for function, given in [(lambda x: compiled(x) * 2, x), (lambda x: sine(layer(x)), x), (loop, x), (branch, x),
                        (lambda q: flex_attention(q, q, q), q)]:
    trace = tl.trace(function, given)
    assert torch.allclose(trace.output, function(given), atol=1e-5), function
    queue, found = list(trace.outputs), set()
    while queue:
        op = queue.pop()
        found.add(op)
        queue.extend(p for p in op.parents if p not in found)
    assert trace.inputs[0] in found
    ran = [op.func_name for op in trace.ops if op.kind == "call"]
    assert ran, function
    if function not in (loop, branch) and given is x:
        assert "linear" in ran, ran
"""


def test_compiled_code_and_higher_order_calls_run_as_usual() -> None:
    subprocess.run([sys.executable, "-c", EAGER], check=True)


def test_tracing_imports_no_compiler() -> None:
    code = (
        "import sys, torch, torchlens as tl\n"
        "seed = torch.manual_seed\n"
        "tl.trace(torch.nn.Linear(2, 2), torch.ones(2), audit=True)\n"
        "assert 'torch._dynamo' not in sys.modules and torch.manual_seed is seed\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_memory_given_by_set_is_what_later_calls_depend_on() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        y, z = torch.zeros(3), x * 2
        y.set_(z)
        return y + 1

    trace = examine(lambda: (net(forward), (torch.randn(3),)), audit=1, values=False)
    assert "mul" in source_names(trace)
    first = calls(trace)[0]
    assert first.out is None
    assert first.lost is not None


def test_writes_to_a_storage_spoil_no_value() -> None:
    def forward(self: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        z = y + 1
        y.untyped_storage().fill_(0)
        return z, y + 1

    examine(lambda: (net(forward), (torch.randn(3),)), audit=None)


def test_numbers_computed_by_numpy_are_a_constant() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        return torch.from_numpy(np.asarray(x * 2) + 1) * 3

    trace = examine(lambda: (net(forward), (torch.randn(3),)), dependence=False)
    assert [op.kind for op in calls(trace)[-1].parents] == ["constant"]
    assert trace.audit is not None
    assert trace.audit.unknown_sources == 1


def test_a_numpy_buffer_that_is_used_again_keeps_each_value() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        buffer, total = np.zeros(3, dtype=np.float32), x
        for step in range(3):
            buffer[:] = step
            total = total + torch.from_numpy(buffer)
        return total

    trace = examine(lambda: (net(forward), (torch.zeros(3),)), dependence=False)
    added = [op.args[1].tolist() for op in calls(trace)]
    assert added == [[0.0] * 3, [1.0] * 3, [2.0] * 3]


def test_children_run_in_other_threads_are_constants() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            a, b = pool.map(lambda layer: layer(x), [self.a, self.b])
        return a + b

    trace = traced(lambda: (net(forward, a=nn.Linear(3, 3), b=nn.Linear(3, 3)), (torch.randn(2, 3),)))
    assert [name.strip("_") for name in names(trace)] == ["add"]
    assert [op.kind for op in calls(trace)[0].parents] == ["constant", "constant"]


def test_worker_processes_are_left_alone() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        data = torch.utils.data.TensorDataset(x)
        loader = torch.utils.data.DataLoader(data, batch_size=1, num_workers=1)
        return sum(batch[0].sum() for batch in loader) + x.sum()

    x = torch.randn(2, 3)
    trace = traced(lambda: (net(forward), (x,)))
    assert torch.allclose(trace.output, 2 * x.sum(), atol=1e-5)
