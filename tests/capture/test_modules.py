"""Modules of every kind, and how they are called."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from typing import Any

import pytest
import torch
from harness import Cases, examine, net
from torch import nn
from torch.nn.utils import prune

import torchlens as tl

pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm", "ignore:Lazy modules")
case = Cases()


def lin(a: int = 3, b: int = 3) -> nn.Linear:
    return nn.Linear(a, b)


def X(*sizes: int) -> torch.Tensor:
    return torch.randn(*(sizes or (2, 3)))


@case(state=False)
def in_a_list() -> tuple[Any, ...]:
    return (net(lambda self, x: self.ls[1](self.ls[0](x)), ls=[lin(), lin()]), (X(),))


@case()
def forward_direct() -> tuple[Any, ...]:
    return (net(lambda self, x: self.l.forward(x) * 2, l=lin()), (X(),))


@case()
def parametrized() -> tuple[Any, ...]:

    class Sym(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).T

    layer = lin()
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Sym())
    return (net(lambda self, x: self.l(x), l=layer), (X(),))


@case()
def param_cached() -> tuple[Any, ...]:

    def f(self, x):
        with torch.nn.utils.parametrize.cached():
            return self.l(x) + self.l(x * 2)

    layer = torch.nn.utils.parametrizations.weight_norm(lin())
    return (net(f, l=layer), (X(),))


@case(state=False)
def weight_norm_old() -> tuple[Any, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = torch.nn.utils.weight_norm(lin())
    return (net(lambda self, x: self.l(x), l=layer), (X(),))


@case()
def orth() -> tuple[Any, ...]:
    return (net(lambda self, x: self.l(x), l=torch.nn.utils.parametrizations.orthogonal(lin())), (X(),))


@case(state=False)
def pruned() -> tuple[Any, ...]:

    layer = lin()
    prune.l1_unstructured(layer, "weight", 0.5)
    return (net(lambda self, x: self.l(x), l=layer), (X(),))


@case(state=False)
def lazy() -> tuple[Any, ...]:
    return (net(lambda self, x: self.l(x), l=nn.LazyLinear(3)), (X(),))


@case()
def hooks() -> tuple[Any, ...]:
    layer = lin()
    layer.register_forward_hook(lambda m, a, o: o * 2)
    layer.register_forward_pre_hook(lambda m, a: (a[0] + 1,))
    layer.register_full_backward_hook(lambda m, gi, go: None)
    layer.register_full_backward_pre_hook(lambda m, g: None)
    return (net(lambda self, x: self.l(x), l=layer), (X(),))


@case()
def hook_inplace_relu_bw() -> tuple[Any, ...]:
    layer = nn.Sequential(lin(), nn.ReLU(), lin())
    [m.register_full_backward_hook(lambda m, gi, go: None) for m in layer]
    return layer, (X(),)


@case()
def forwarded_attributes() -> tuple[Any, ...]:

    class Wrap(nn.Module):
        def __init__(self, m):
            super().__init__()
            self.m = m

        def __getattr__(self, n):
            try:
                return super().__getattr__(n)
            except AttributeError:
                return getattr(self.m, n)

        def forward(self, x):
            return self.m(x)

    return (Wrap(Wrap(lin())), (X(),))


@case(state=False)
def shadow() -> tuple[Any, ...]:

    class Sh(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = lin()
            self.children = "no"
            self.modules = 3
            self.named_modules = None
            self.parameters = 1
            self.buffers = None
            self.named_buffers = 0
            self.type = "x"
            self.name = "n"
            self.training_ = 1

        def forward(self, x):
            return self.l(x)

    return (Sh(), (X(),))


@case(state=False)
def slots_noweak() -> tuple[Any, ...]:

    class Fn:
        __slots__ = ("l",)

        def __init__(self):
            self.l = lin()

        def __call__(self, x):
            return self.l(x)

    return (Fn(), (X(),))


@case()
def generator() -> tuple[Any, ...]:

    def f(self, x):

        def gen(x):
            for layer in (self.a, self.b):
                x = layer(x)
                yield x

        return list(gen(x))

    return (net(f, a=lin(), b=lin()), (X(),))


@case()
def recursive() -> tuple[Any, ...]:

    class R(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = lin()

        def forward(self, x, n=3):
            return self.l(x) if n == 0 else self(self.l(x), n - 1)

    return (R(), (X(),))


@case(state=False)
def base_exc() -> tuple[Any, ...]:

    class Stop(BaseException):
        pass

    class E(nn.Module):
        def forward(self, x):
            self.y = x * 2
            raise Stop(self.y)

    def f(self, x):
        try:
            self.e(x)
        except Stop as e:
            y = e.args[0]
        return self.l(y)

    return (net(f, e=E(), l=lin()), (X(),))


@case()
def caught() -> tuple[Any, ...]:

    class E(nn.Module):
        def forward(self, x):
            return x @ torch.zeros(7, 7)

    def f(self, x):
        try:
            y = self.e(x)
        except RuntimeError:
            y = self.l(x)
        return self.l(y)

    return (net(f, e=E(), l=lin()), (X(),))


@case()
def identity() -> tuple[Any, ...]:
    return (nn.Sequential(nn.Identity(), lin(), nn.Identity(), nn.Dropout(0.0)), (X(),))


@case(state=False)
def late_param() -> tuple[Any, ...]:

    def f(self, x):
        if not hasattr(self, "w"):
            self.w = nn.Parameter(torch.ones(3, 3))
        return x @ self.w

    return (net(f), (X(),))


@case()
def split_param() -> tuple[Any, ...]:

    def f(self, x):
        a, b = self.w.split(3)
        q = self.w[:3].t()
        return x @ a + x @ b.t() + x @ q

    return (net(f, w=nn.Parameter(torch.randn(6, 3))), (X(),))


@case()
def unregistered() -> tuple[Any, ...]:
    m = net(lambda self, x: x @ self.ws[0] + self.d["b"])
    m.ws = [torch.nn.Parameter(torch.randn(3, 3))]
    m.d = {"b": torch.randn(3)}
    return (m, (X(),))


@case()
def tied() -> tuple[Any, ...]:
    e = nn.Embedding(5, 3)
    layer = nn.Linear(3, 5, bias=False)
    layer.weight = e.weight
    return (net(lambda self, i: self.l(self.e(i)), e=e, l=layer), (torch.tensor([1, 2]),))


@case()
def call_override() -> tuple[Any, ...]:

    class C(nn.Linear):
        def __call__(self, x):
            return self.forward(x) + 1

    return (net(lambda self, x: self.c(x), c=C(3, 3)), (X(),))


@case()
def mid_created() -> tuple[Any, ...]:
    return (net(lambda self, x: nn.Linear(3, 2)(x)), (X(),))


@case()
def moduledict() -> tuple[Any, ...]:
    return (
        net(
            lambda self, x: sum(m(x) for m in self.d.values()),
            d=nn.ModuleDict({"a": lin(), "b.c".replace(".", "_"): lin()}),
        ),
        (X(),),
    )


@case()
def closure() -> tuple[Any, ...]:
    layer = lin()
    return (lambda x: layer(x).relu(), (X(),))


@case()
def partly_applied() -> tuple[Any, ...]:
    layer = lin()
    return (functools.partial(lambda y, x: layer(x) + y, 2), (X(),))


@case()
def bound_method() -> tuple[Any, ...]:
    m = net(lambda self, x: x, l=lin())
    type(m).enc = lambda self, x: self.l(x) * 2
    return (m.enc, (X(),))


@case()
def decorated() -> tuple[Any, ...]:
    m = net(torch.no_grad()(lambda self, x: self.l(x)), l=lin())
    return (m, (X(),))


@case()
def self_ref() -> tuple[Any, ...]:
    m = net(lambda self, x: self.l(x), l=lin())
    m.__dict__["me"] = m
    m.l.__dict__["parent"] = m
    return (m, (X(),))


@case(state=False)
def to_in_forward() -> tuple[Any, ...]:
    return (net(lambda self, x: self.l.to(torch.float64)(x.double()).float(), l=lin()), (X(),))


@case()
def setattr_buffer() -> tuple[Any, ...]:

    def f(self, x):
        self.b = self.b + x.mean(0)
        return x + self.b

    return (net(f, b=torch.zeros(3)), (X(),))


@pytest.mark.parametrize("name", case)
def test_modules(name: str) -> None:
    build, options = case[name]
    examine(build, **options)


class Nest(nn.Module):
    def __init__(self, inner: nn.Module | None) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if self.inner is None else self.inner(x) + 1


def test_modules_nested_as_deeply_as_python_allows() -> None:
    depth = 1000
    model: nn.Module = Nest(None)
    for _ in range(depth):
        model = Nest(model)
    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(len(inspect.stack(0)) + 4 * depth + 40)
        limit = sys.getrecursionlimit()
        wanted = model(torch.ones(2))
        trace = tl.trace(model, (torch.ones(2),))
        assert sys.getrecursionlimit() == limit
    finally:
        sys.setrecursionlimit(before)
    assert torch.equal(trace.output, wanted)
    assert len(trace.ops) == depth + 3
    assert len(trace.ops[1].modules) == depth + 1


def test_a_module_that_turns_its_input_was_given_the_unturned_one() -> None:
    class Turn(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.t_()

    trace = examine(lambda: (net(lambda self, x: self.turn(x * 1) + 1, turn=Turn()), (X(),)))
    turn = trace.modules[1].calls[0]
    assert turn.inputs[0][0].shape == (2, 3)
    assert turn.out.shape == (3, 2)


def test_a_module_that_writes_its_input_was_given_the_old_one() -> None:
    trace = examine(lambda: (net(lambda self, x: self.relu(x * 1) + 1, relu=nn.ReLU(inplace=True)), (X(),)))
    relu = trace.modules[1].calls[0]
    assert relu.inputs[0][0].min() < 0
    assert relu.out.min() >= 0
