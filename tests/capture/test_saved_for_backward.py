"""Bytes kept for the backward pass, against torch's own hooks on a plain run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from harness import calls, net
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import torchlens as tl

MODELS: dict[str, Callable[[], nn.Module]] = {
    "perceptron": lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4), nn.Tanh()),
    "norms": lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.BatchNorm1d(4)),
    "one input saved by many": lambda: net(lambda self, x: x.exp() * x.sin() + (x * x).cos()),
    "attention": lambda: net(lambda self, x: F.scaled_dot_product_attention(*([self.l(x)[None]] * 3)),
                             l=nn.Linear(4, 4)),
    "softmax and loss": lambda: net(lambda self, x: F.cross_entropy(self.l(x), torch.zeros(5).long()),
                                    l=nn.Linear(4, 3)),
}  # fmt: skip


def packed_bytes(model: nn.Module, x: Tensor) -> int:
    """Bytes of the distinct memories that autograd packs in a plain forward, parameters aside."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    found: dict[int, int] = {}
    held = []

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        held.append(tensor)
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(x)
    return sum(found.values())


@pytest.mark.parametrize("name", MODELS)
def test_total_is_what_torch_packs(name: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name]()
    x = torch.randn(5, 4, requires_grad=True)
    wanted = packed_bytes(model, x)
    trace = tl.trace(model, x, saved_for_backward=True)
    assert sum(int(op.saved_for_backward or 0) for op in calls(trace)) == wanted


def test_ops_without_gradient_have_none() -> None:
    model = MODELS["perceptron"]()
    with torch.no_grad():
        trace = tl.trace(model, torch.randn(5, 4), saved_for_backward=True)
    assert [op.saved_for_backward for op in calls(trace)] == [None] * 4


def test_it_is_read_in_training_mode_only_unless_asked() -> None:
    model = MODELS["perceptron"]()
    assert any(op.saved_for_backward for op in calls(tl.trace(model, torch.randn(5, 4))))
    model.eval()
    assert not any(op.saved_for_backward for op in calls(tl.trace(model, torch.randn(5, 4))))


def test_checkpointed_ops_are_unknown_and_run_once() -> None:
    runs = []

    def block(self: nn.Module, x: Tensor) -> Tensor:
        runs.append(1)
        return self.l(x).relu()

    model = net(lambda self, x: checkpoint(lambda y: block(self, y), x, use_reentrant=False).sum(),
                l=nn.Linear(4, 4))  # fmt: skip
    trace = tl.trace(model, torch.randn(5, 4, requires_grad=True), saved_for_backward=True)
    assert runs == [1]
    by_name = {op.func_name: op.saved_for_backward for op in calls(trace)}
    assert by_name["linear"] is None
    assert by_name["relu"] is None


def test_an_error_in_the_users_backward_is_still_found() -> None:
    def spoiled(self: nn.Module, x: Tensor) -> Tensor:
        y = self.l(x).exp()
        z = y.sum()
        y.mul_(2)
        return z

    trace = tl.trace(net(spoiled, l=nn.Linear(4, 4)), torch.randn(5, 4), saved_for_backward=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        trace.output.backward()
