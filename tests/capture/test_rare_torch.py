"""Rarely used parts of torch inside a forward."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from einops import rearrange, reduce
from harness import Cases, examine, net
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:.*is deprecated", "ignore:torch.quantize_per_tensor"
)
case = Cases()


def lin(a: int = 3, b: int = 3) -> nn.Linear:
    return nn.Linear(a, b)


def X(*sizes: int) -> torch.Tensor:
    return torch.randn(*(sizes or (2, 3)))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(np.sin(x.detach().numpy()))

    @staticmethod
    def backward(ctx, g):
        return g


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


class Two(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, a, b):
        return a, b


def affine_of(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    affine = torch.jit.script(affine_of)


FUNCTIONS = {
    "inside torch": lambda self, x: Square.apply(self.l(x)),
    "inside numpy": lambda self, x: Sine.apply(self.l(x)) * 2,
    "inside numpy, no gradient": lambda self, x: Sine.apply(x.detach()) * 2,
    "in place": lambda self, x: Doubled.apply(self.l(x) * 1) * 2,
    "identity": lambda self, x: Same.apply(self.l(x), 3) * 2,
    "two outputs": lambda self, x: torch.cat(Two.apply(self.l(x), x)),
    "re-entrant checkpoint": lambda self, x: checkpoint(
        lambda y: F.dropout(self.l(y)).relu(), x, use_reentrant=True
    ),
    "checkpoint": lambda self, x: checkpoint(lambda y: F.dropout(self.l(y)).relu(), x, use_reentrant=False),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_custom_function(name: str) -> None:
    examine(lambda: (net(FUNCTIONS[name], l=lin()), (X().requires_grad_(),)))


@case(values=False)
def mha() -> tuple[Any, ...]:
    return (
        net(lambda self, x: self.a(x, x, x), a=nn.MultiheadAttention(4, 2, batch_first=True)),
        (X(2, 5, 4),),
    )


@case()
def mha_mask() -> tuple[Any, ...]:
    return (
        net(
            lambda self, x, m: self.a(x, x, x, key_padding_mask=m, average_attn_weights=False)[1],
            a=nn.MultiheadAttention(4, 2),
        ),
        (X(5, 2, 4), torch.tensor([[0, 0, 1, 0, 1], [0, 0, 0, 0, 0]]).bool()),
    )


@case()
def mha_noweights() -> tuple[Any, ...]:
    return (
        net(
            lambda self, x: self.a(
                x,
                x,
                x,
                need_weights=False,
                is_causal=True,
                attn_mask=nn.Transformer.generate_square_subsequent_mask(5),
            )[0],
            a=nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True),
        ),
        (X(5, 2, 4),),
    )


@case(values=False)
def mha_kdim() -> tuple[Any, ...]:
    return (
        net(lambda self, x, y: self.a(x, y, y)[0], a=nn.MultiheadAttention(4, 2, kdim=3, vdim=3)),
        (X(5, 2, 4), X(5, 2, 3)),
    )


@case(values=False)
def enc_eval() -> tuple[Any, ...]:
    return (
        nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2, enable_nested_tensor=True
        ).eval(),
        (X(2, 5, 4),),
        {"src_key_padding_mask": torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]).bool()},
    )


@case(values=False)
def transformer() -> tuple[Any, ...]:
    return (nn.Transformer(4, 2, 1, 1, 8, batch_first=True), (X(2, 5, 4), X(2, 3, 4)))


@case()
def vmap() -> tuple[Any, ...]:
    return (
        net(
            lambda self, x: torch.vmap(lambda r: self.w @ r + r.sum(), in_dims=1, out_dims=1)(x),
            w=nn.Parameter(torch.randn(2, 2)),
        ),
        (X(2, 3),),
    )


@case()
def vmap_nested() -> tuple[Any, ...]:
    return (net(lambda self, x: torch.vmap(torch.vmap(lambda a: a.sin() * 2))(x)), (X(2, 3),))


@case()
def grad() -> tuple[Any, ...]:
    return (net(lambda self, x: torch.func.grad(lambda y: (y**3).sum())(x) * 2), (X(),))


@case()
def jacrev() -> tuple[Any, ...]:
    return (net(lambda self, x: torch.func.jacrev(lambda y: y**2)(x)), (X(3),))


@case()
def jvp() -> tuple[Any, ...]:
    return (net(lambda self, x: torch.func.jvp(lambda y: y.sin(), (x,), (x * 2,))), (X(3),))


@case()
def hessian() -> tuple[Any, ...]:
    return (net(lambda self, x: torch.func.hessian(lambda y: (y**3).sum())(x)), (X(3),))


@case()
def funcall() -> tuple[Any, ...]:
    return (
        net(lambda self, x: torch.func.functional_call(self.l, {"weight": self.l.weight * 2}, (x,)), l=lin()),
        (X(),),
    )


@case()
def autocast() -> tuple[Any, ...]:

    def f(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.l(x)
            y = self.l(y)
        return y.float()

    return (net(f, l=lin()), (X(),))


@case()
def dtypes() -> tuple[Any, ...]:
    return (
        net(lambda self, a, b, c: (a + 1, b * 2, c.abs() + c.real)),
        (X().half(), X().bfloat16(), torch.complex(X(), X())),
    )


@case(state=False)
def quant() -> tuple[Any, ...]:
    return (
        torch.ao.quantization.quantize_dynamic(
            nn.Sequential(lin(), nn.ReLU(), lin()), {nn.Linear}, dtype=torch.qint8
        ),
        (X(),),
    )


@case()
def quant_t() -> tuple[Any, ...]:
    return (net(lambda self, x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize() * 2), (X(),))


@case(state=False, audit=None)
def script() -> tuple[Any, ...]:
    return (
        net(
            lambda self, x: self.l(self.s(x)) * 2,
            l=lin(),
            s=torch.jit.script(nn.Sequential(lin(), nn.ReLU())),
        ),
        (X(),),
    )


@case(state=False, audit=None)
def traced() -> tuple[Any, ...]:
    return (
        net(
            lambda self, x: self.l(self.s(x)) * 2,
            l=lin(),
            s=torch.jit.trace(nn.Sequential(lin(), nn.ReLU()), torch.ones(2, 3)),
        ),
        (X(),),
    )


@case(audit=None)
def script_fn() -> tuple[Any, ...]:
    return (net(lambda self, x: self.l(affine(x)) * 2, l=lin()), (X().requires_grad_(),))


@case()
def dataparallel() -> tuple[Any, ...]:
    return (nn.DataParallel(lin()), (X(),))


@case()
def meta() -> tuple[Any, ...]:
    return (lin().to("meta"), (X().to("meta"),))


@case()
def defdev() -> tuple[Any, ...]:

    def f(self, x):
        with torch.device("cpu"):
            y = torch.zeros(2, 3)
            return self.l(x) + y

    return (net(f, l=lin()), (X(),))


@case()
def usermode_inside() -> tuple[Any, ...]:

    class U(TorchFunctionMode):
        def __torch_function__(self, f, t, a=(), k=None):
            return f(*a, **k or {})

    def f(self, x):
        with U():
            y = self.l(x).relu()
        return y * 2

    return (net(f, l=lin()), (X(),))


@case()
def dispatchmode() -> tuple[Any, ...]:

    class U(TorchDispatchMode):
        def __torch_dispatch__(self, f, t, a=(), k=None):
            return f(*a, **k or {})

    def f(self, x):
        with U():
            y = self.l(x).relu()
        return y * 2

    return (net(f, l=lin()), (X(),))


@case()
def autograd_inside() -> tuple[Any, ...]:

    def f(self, x):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            e = (self.l(y) ** 2).sum()
            (g,) = torch.autograd.grad(e, y)
        return x - g

    return (net(f, l=lin()), (X(),))


@case()
def backward_inside() -> tuple[Any, ...]:

    def f(self, x):
        with torch.enable_grad():
            y = (x * 1).requires_grad_()
            (y**2).sum().backward()
        return y.grad * 2

    return (net(f), (X(),))


@case(audit=None)
def deepcopy() -> tuple[Any, ...]:
    return (net(lambda self, x: copy.deepcopy(self.l)(x) + copy.deepcopy(x) * 2, l=lin()), (X(),))


@case()
def fx() -> tuple[Any, ...]:
    return (torch.fx.symbolic_trace(nn.Sequential(lin(), nn.ReLU())), (X(),))


@case(audit=None)
def customop() -> tuple[Any, ...]:
    try:

        @torch.library.custom_op("mylib::foo", mutates_args=())
        def foo(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(np.cos(x.detach().numpy()))
    except Exception:
        pass
    return (net(lambda self, x: torch.ops.mylib.foo(self.l(x)) * 2, l=lin()), (X(),))


@case(audit=None)
def customop_mut() -> tuple[Any, ...]:

    def f(self, x):
        y = x * 2
        torch.ops.mylib.bar(y)
        return y + 1

    try:

        @torch.library.custom_op("mylib::bar", mutates_args=("x",))
        def bar(x: torch.Tensor) -> None:
            x.numpy()[:] = 3
    except Exception:
        pass
    return (net(f), (X(),))


@case()
def einops() -> tuple[Any, ...]:
    return (net(lambda self, x: reduce(rearrange(x, "b (h d)->b h d", h=1), "b h d->b d", "mean")), (X(),))


@case()
def determ() -> tuple[Any, ...]:

    def f(self, x):
        torch.use_deterministic_algorithms(True)
        try:
            return torch.empty(3) * 0 + x
        finally:
            torch.use_deterministic_algorithms(False)

    return (net(f), (X(),))


@case()
def gradmode() -> tuple[Any, ...]:

    def f(self, x):
        with torch.no_grad():
            a = self.l(x)
        with torch.set_grad_enabled(True):
            b = self.l(x)
        return a + b

    return (net(f, l=lin()), (X(),))


@case()
def dlpack_np() -> tuple[Any, ...]:

    def f(self, x):
        y = x * 2
        return torch.from_numpy(y.numpy()) + 1

    return (net(f), (X(),))


@pytest.mark.parametrize("name", case)
def test_rare(name: str) -> None:
    build, options = case[name]
    examine(build, **options)
