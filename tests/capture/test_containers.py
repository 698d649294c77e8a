"""Inputs and outputs of every kind of container."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import pytest
import torch
from harness import Cases, examine, net
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR", "ignore:The PyTorch API of nested tensors")
case = Cases()


@dataclasses.dataclass
class Pair:
    a: torch.Tensor
    b: Any


Point = collections.namedtuple("Point", "p q")


class Plain(torch.Tensor):
    pass


class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


@case()
def dataclass() -> tuple[Any, ...]:
    return (
        net(lambda self, x, dc: Pair(self.l(x) + dc.a, {"k": [dc.b["z"] * 2]}), l=nn.Linear(3, 3)),
        (torch.randn(2, 3), Pair(torch.randn(2, 3), {"z": torch.randn(3)})),
    )


@case()
def namedtuple() -> tuple[Any, ...]:
    return (net(lambda self, nt: Point(nt.p + 1, (nt.q * 2,))), (Point(torch.randn(2), torch.randn(3)),))


@case()
def cyclic() -> tuple[Any, ...]:
    d = {"x": torch.randn(3)}
    d["self"] = d
    items = [d]
    items.append(items)

    def f(self, d, items):
        out = {"y": d["x"] * 2}
        out["me"] = out
        return out

    return (net(f), (d, items))


@case()
def packed() -> tuple[Any, ...]:

    def f(self, p):
        o, h = self.r(p)
        return (o, h)

    p = pack_padded_sequence(torch.randn(2, 4, 3), torch.tensor([4, 2]), batch_first=True)
    return (net(f, r=nn.LSTM(3, 5, batch_first=True)), (p,))


@case()
def packed_inside() -> tuple[Any, ...]:

    def f(self, x):
        p = pack_padded_sequence(x, [4, 2], batch_first=True)
        o, _ = self.r(p)
        return pad_packed_sequence(o, batch_first=True)[0]

    return (net(f, r=nn.GRU(3, 5, batch_first=True)), (torch.randn(2, 4, 3),))


@case()
def dist() -> tuple[Any, ...]:
    return (
        net(
            lambda self, x: torch.distributions.Normal(self.l(x), F.softplus(self.m(x))),
            l=nn.Linear(3, 2),
            m=nn.Linear(3, 2),
        ),
        (torch.randn(2, 3),),
    )


@case()
def dist_rsample() -> tuple[Any, ...]:

    def f(self, x):
        d = torch.distributions.Normal(self.l(x), F.softplus(self.m(x)))
        z = d.rsample()
        return (z, d.log_prob(z), torch.distributions.kl_divergence(d, torch.distributions.Normal(0.0, 1.0)))

    return (net(f, l=nn.Linear(3, 2), m=nn.Linear(3, 2)), (torch.randn(2, 3),))


@case()
def sparse() -> tuple[Any, ...]:
    return (
        net(lambda self, x: torch.sparse.mm(x, self.w), w=nn.Parameter(torch.randn(3, 2))),
        (torch.eye(3).to_sparse(),),
    )


@case()
def csr() -> tuple[Any, ...]:
    return (net(lambda self, x, y: x @ y), (torch.eye(3).to_sparse_csr(), torch.randn(3, 2)))


@case()
def nested() -> tuple[Any, ...]:
    return (
        net(lambda self, x: (self.l(x) * 2).to_padded_tensor(0.0), l=nn.Linear(3, 2)),
        (torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged),),
    )


@case()
def nested_strided() -> tuple[Any, ...]:
    return (
        net(lambda self, x: (self.l(x) * 2).to_padded_tensor(0.0), l=nn.Linear(3, 2)),
        (torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)]),),
    )


@case()
def subclass() -> tuple[Any, ...]:
    return (
        net(lambda self, x: self.l(x) + x.as_subclass(torch.Tensor).sum(), l=nn.Linear(3, 3)),
        (torch.randn(2, 3).as_subclass(Plain),),
    )


@case()
def subclass_own() -> tuple[Any, ...]:
    return (net(lambda self, x: (x * 2)[0].relu()), (torch.randn(2, 3).as_subclass(Own),))


@case()
def same_twice() -> tuple[Any, ...]:
    return (net(lambda self, a, b: a * b), (lambda t: (t, t))(torch.randn(3)))


@case()
def one_list() -> tuple[Any, ...]:
    return (net(lambda self, xs: torch.cat(xs)), ([torch.randn(2), torch.randn(3)],))


@case()
def varargs() -> tuple[Any, ...]:
    return (
        net(lambda self, *a, **k: a[0] + a[1] * k["m"]),
        (torch.randn(2), torch.randn(2)),
        {"m": torch.randn(2)},
    )


@case()
def kwonly() -> tuple[Any, ...]:

    def f(self, x, *, mask, scale=2.0):
        return x * mask * scale

    return (net(f), (torch.randn(2),), {"mask": torch.ones(2)})


@case()
def scalars() -> tuple[Any, ...]:
    return (
        net(lambda self, x, n, name, flag, none: (x * n, name, flag, none, 3)),
        (torch.randn(2), 2, "s", True, None),
    )


@case()
def set_of_tensors() -> tuple[Any, ...]:
    return (net(lambda self, x: {x + 1}), (torch.randn(2),))


@case()
def deque() -> tuple[Any, ...]:
    return (net(lambda self, d: sum(d)), (collections.deque([torch.randn(2), torch.randn(2)]),))


@case()
def plain_object() -> tuple[Any, ...]:

    class Box:
        pass

    o = Box()
    o.t = torch.randn(2)
    o.inner = Box()
    o.inner.u = [torch.randn(2)]

    def f(self, o):
        r = Box()
        r.y = o.t * o.inner.u[0]
        return r

    return (net(f), (o,))


@case()
def userdict() -> tuple[Any, ...]:
    return (
        net(lambda self, d: collections.OrderedDict(y=d["a"] * 2)),
        (collections.UserDict(a=torch.randn(2)),),
    )


@case()
def out_input() -> tuple[Any, ...]:
    return (net(lambda self, x: (x, x * 2, x)), (torch.randn(2),))


@case()
def out_param() -> tuple[Any, ...]:
    return (
        net(lambda self, x: (self.w, self.b, x * self.w), w=nn.Parameter(torch.randn(2)), b=torch.ones(2)),
        (torch.randn(2),),
    )


@case()
def int_out() -> tuple[Any, ...]:
    return (net(lambda self, x: int(x.argmax())), (torch.randn(4),))


@case()
def none() -> tuple[Any, ...]:
    return (net(lambda self, x: None), (torch.randn(4),))


@pytest.mark.parametrize("name", case)
def test_container(name: str) -> None:
    build, options = case[name]
    examine(build, **options)
