"""Tracing leaves model, inputs, generators and torch itself as they were, however the run ends."""

from __future__ import annotations

import gc
import random
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from harness import calls, net
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules import module as module_hooks

import torchlens as tl


class Stop(BaseException):
    pass


def work(self: nn.Module, x: Tensor) -> Tensor:
    y = self.norm(self.l(x))
    self.count += 1
    self.count.data.add_(1)
    self.mean = self.mean + y.detach().mean()
    return F.dropout(y) + torch.randn(4) + random.random() + np.random.rand()


def raising(error: BaseException) -> Callable[..., Tensor]:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        work(self, x)
        raise error

    return forward


def bad_op(self: nn.Module, x: Tensor) -> Tensor:
    return work(self, x) @ torch.zeros(7, 7)


ENDINGS: dict[str, tuple[Callable[..., Tensor], type[BaseException] | None]] = {
    "success": (work, None),
    "failure in an op": (bad_op, RuntimeError),
    "failure in user code": (raising(ValueError("no")), ValueError),
    "interrupt": (raising(KeyboardInterrupt()), KeyboardInterrupt),
    "another BaseException": (raising(Stop()), Stop),
}


def made(forward: Callable[..., Tensor]) -> nn.Module:
    torch.manual_seed(0)
    return net(forward, l=nn.Linear(4, 4), norm=nn.BatchNorm1d(4), count=torch.zeros(1), mean=torch.zeros(()))


def state_of(model: nn.Module) -> list[Any]:
    numpy_state = np.random.get_state()
    return [
        {name: tensor.clone().tolist() for name, tensor in model.state_dict().items()},
        {name: id(tensor) for name, tensor in [*model.named_parameters(), *model.named_buffers()]},
        [(m.training, sorted(vars(m)), len(m._forward_hooks)) for m in model.modules()],
        [(p.requires_grad, p._version, p.grad) for p in model.parameters()],
        torch.get_rng_state().tolist(),
        random.getstate(),
        (numpy_state[1].tolist(), numpy_state[2]),
        (torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled()),
        torch._C._len_torch_function_stack(),
        (gc.get_threshold(), gc.isenabled(), sys.getrecursionlimit()),
        (sys.gettrace(), sys.getprofile(), sys.excepthook, threading.excepthook),
        (len(module_hooks._global_forward_hooks), len(module_hooks._global_forward_pre_hooks)),
    ]  # fmt: skip


def namespace() -> dict[str, int]:
    spaces = {"torch": torch, "F": F, "Tensor": torch.Tensor, "Module": nn.Module}
    return {
        f"{s}.{n}": id(v) for s, space in spaces.items() for n, v in vars(space).items() if n != "_dynamo"
    }


@pytest.mark.parametrize("options", [{}, {"audit": True}, {"save": False}, {"warmup": 1, "repeats": 2}])
@pytest.mark.parametrize("ending", ENDINGS)
def test_everything_is_as_before(ending: str, options: dict[str, Any]) -> None:
    forward, error = ENDINGS[ending]
    model, x = made(forward), torch.ones(3, 4, requires_grad=True)
    before, torch_before = state_of(model), namespace()
    if error is None:
        tl.trace(model, x, **options)
    else:
        with pytest.raises(error):
            tl.trace(model, x, **options)
    assert state_of(model) == before
    assert namespace() == torch_before
    assert (x._version, x.grad, x.requires_grad) == (0, None, True)
    assert torch.equal(x, torch.ones(3, 4))


def test_without_restoring_the_effect_is_one_forward() -> None:
    plain, model = made(work), made(work)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    plain(torch.ones(3, 4))
    wanted = state_of(plain)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    tl.trace(model, torch.ones(3, 4), restore_state=False, warmup=2, repeats=2)
    found = state_of(model)
    assert found[0] == wanted[0]
    assert found[4:7] == wanted[4:7]


def test_a_returned_buffer_keeps_its_value_in_the_output() -> None:
    def forward(self: nn.Module, x: Tensor) -> dict[str, Any]:
        self.count += 1
        return {"count": self.count, "view": [self.count[0]], "x": x}

    model, x = made(forward), torch.ones(1)
    trace = tl.trace(model, x)
    assert trace.output["count"].tolist() == [1]
    assert trace.output["view"][0].item() == 1
    assert trace.output["x"] is x
    assert model.count.tolist() == [0]
    assert calls(trace)[0].out.tolist() == [1.0]


def test_the_output_is_the_very_object() -> None:
    made_by_model = []

    def forward(self: nn.Module, x: Tensor) -> Any:
        made_by_model.append({"y": (self.l(x), [x])})
        return made_by_model[-1]

    trace = tl.trace(made(forward), torch.ones(3, 4))
    assert trace.output is made_by_model[0]


@pytest.mark.parametrize("grad", [True, False])
def test_model_and_values_are_freed_with_the_trace(grad: bool) -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        hidden = self.l(x)
        hidden += 1
        kept.append(weakref.ref(hidden))
        return self.norm(hidden)

    kept: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        model = made(forward)
        model.requires_grad_(grad)
        trace = tl.trace(model, torch.ones(3, 4))
        owner = weakref.ref(model)
        del model
        assert owner() is None, "the trace keeps the model alive"
        value = weakref.ref(trace.recording.calls[0].outs[0].kept)
        del trace
        assert value() is None
        assert kept[0]() is None
    finally:
        gc.enable()


def test_no_graph_is_held_besides_the_output() -> None:
    trace = tl.trace(made(work), torch.ones(3, 4))
    for op in trace.ops:
        values = op.out if isinstance(op.out, tuple) else (op.out,)
        assert all(v.grad_fn is None for v in values if isinstance(v, Tensor))
    trace.output.sum().backward()


def test_other_threads_are_not_recorded() -> None:
    stop = threading.Event()
    other = nn.Linear(4, 4)
    results: list[Tensor] = []

    def busy() -> None:
        while not stop.is_set():
            results.append(other(torch.ones(2, 4)).tanh())

    worker = threading.Thread(target=busy)
    worker.start()
    try:
        trace = tl.trace(net(lambda self, x: [x * i for i in range(50)]), torch.ones(2))
    finally:
        stop.set()
        worker.join()
    assert [op.func_name.strip("_") for op in calls(trace)] == ["mul"] * 50
    assert len(trace.modules[0].calls) == 1
    assert results
