"""Every way to write memory: values are those at call time and dependence is right."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import Cases, examine, net
from torch import nn
from torch.nn import functional as F

case = Cases()


@case()
def numpy_share() -> tuple[Any, ...]:

    def f(self, x):
        y = x * 2
        n = y.numpy()
        n[0] = 7
        return y + 1

    return (net(f), (torch.randn(3),))


@case()
def numpy_after() -> tuple[Any, ...]:

    def f(self, x):
        y = x * 2
        z = y + 1
        y.numpy()[:] = 5
        return z

    return (net(f), (torch.randn(3),))


@case(audit=0)
def dlpack() -> tuple[Any, ...]:

    def f(self, x):
        y = x * 2
        d = torch.from_dlpack(y)
        d.add_(1)
        return y * 3

    return (net(f), (torch.randn(3),))


@case()
def data_set() -> tuple[Any, ...]:

    def f(self, x):
        y = torch.zeros(3)
        y.data = x * 2
        return y + 1

    return (net(f), (torch.randn(3),))


@case()
def data_write() -> tuple[Any, ...]:

    def f(self, x):
        y = x * 2
        y.data.mul_(3)
        y.data[0] = 1
        return y + 1

    return (net(f), (torch.randn(3),))


@case()
def buffer_data() -> tuple[Any, ...]:

    def f(self, x):
        self.b.data.copy_(x)
        self.b.data = self.b * 2
        return self.b + 1

    return (net(f, b=torch.zeros(3)), (torch.randn(3),))


@case()
def counter_index() -> tuple[Any, ...]:

    def f(self, x):
        outs = []
        pos = torch.zeros((), dtype=torch.long)
        cache = torch.zeros(4, 3)
        for i in range(3):
            cache[pos] = x[i]
            outs.append(cache.sum())
            pos += 1
        return (cache, torch.stack(outs))

    return (net(f), (torch.randn(3, 3),))


@case()
def kv() -> tuple[Any, ...]:

    def f(self, x):
        for i in range(4):
            self.k[:, i : i + 1] = self.l(x[:, i : i + 1])
            o = self.k[:, : i + 1].sum(1)
        return o

    return (net(f, l=nn.Linear(3, 3), k=torch.zeros(2, 4, 3)), (torch.randn(2, 4, 3),))


@case()
def index_copy() -> tuple[Any, ...]:

    def f(self, x):
        self.k.index_copy_(1, self.pos, x)
        self.pos.add_(1)
        self.k.index_copy_(1, self.pos, x * 2)
        return (self.k.sum(), self.pos)

    return (net(f, k=torch.zeros(2, 4, 3), pos=torch.tensor([0])), (torch.randn(2, 1, 3),))


@case(state=False)
def maxnorm() -> tuple[Any, ...]:

    def f(self, i):
        return (self.e(i), self.e.weight * 1)

    return (net(f, e=nn.Embedding(5, 3, max_norm=0.1)), (torch.tensor([1, 2]),))


@case()
def foreach() -> tuple[Any, ...]:

    def f(self, x):
        a, b = (x * 1, x * 2)
        torch._foreach_mul_([a, b], 2.0)
        return a + b

    return (net(f), (torch.randn(3),))


@case()
def bn() -> tuple[Any, ...]:
    return (
        net(lambda self, x: self.bn(self.bn(x)) + self.bn.running_mean, bn=nn.BatchNorm1d(3)),
        (torch.randn(4, 3),),
    )


@case()
def bn_momentum_none() -> tuple[Any, ...]:
    return (
        net(lambda self, x: self.bn(x) * self.bn.running_var, bn=nn.BatchNorm1d(3, momentum=None)),
        (torch.randn(4, 3),),
    )


@case()
def instnorm() -> tuple[Any, ...]:
    return (
        net(
            lambda self, x: self.n(x).sum() * self.n.running_var,
            n=nn.InstanceNorm1d(3, track_running_stats=True),
        ),
        (torch.randn(2, 3, 5),),
    )


@case()
def spectral() -> tuple[Any, ...]:
    return (
        net(lambda self, x: self.l(x), l=torch.nn.utils.spectral_norm(nn.Linear(3, 3))),
        (torch.randn(4, 3),),
    )


@case()
def spectral_p() -> tuple[Any, ...]:
    return (
        net(lambda self, x: self.l(x), l=torch.nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))),
        (torch.randn(4, 3),),
    )


@case()
def out() -> tuple[Any, ...]:

    def f(self, x):
        y = torch.empty(3)
        torch.mul(x, 2, out=y)
        z = y + 1
        torch.add(y, 1, out=y)
        return z * y

    return (net(f), (torch.randn(3),))


@case()
def out_pair() -> tuple[Any, ...]:

    def f(self, x):
        v = torch.empty(0)
        i = torch.empty(0, dtype=torch.long)
        torch.sort(x, out=(v, i))
        return (v * 2, i)

    return (net(f), (torch.randn(3),))


@case()
def out_resize() -> tuple[Any, ...]:

    def f(self, x):
        y = torch.empty(0)
        torch.mul(x, 2, out=y)
        return y + 1

    return (net(f), (torch.randn(3),))


@case()
def inplace_positional() -> tuple[Any, ...]:

    def f(self, x):
        y = x * 1
        F.dropout(y, 0.5, True, True)
        F.relu(y, True)
        F.leaky_relu(y, 0.1, True)
        F.hardtanh(y, -1, 1, True)
        F.elu(y, 1.0, True)
        F.threshold(y, 0.1, 0.0, True)
        F.celu(y, 1.0, True)
        F.selu(y, True)
        F.silu(y, True)
        F.mish(y, True)
        F.hardswish(y, True)
        F.relu6(y, True)
        F.rrelu(y, 0.1, 0.2, True, True)
        F.alpha_dropout(y, 0.2, True, True)
        F.feature_alpha_dropout(y[None], 0.2, True, True)
        return y

    return (net(f), (torch.randn(5),))


@case()
def chunk_write() -> tuple[Any, ...]:

    def f(self, x):
        y = x * 1
        a = y.chunk(2)[0]
        a.add_(1)
        d = y.split(2)[1]
        d.mul_(2)
        e = y.unbind(0)
        e[0].fill_(9)
        return y

    return (net(f), (torch.randn(4),))


@case()
def view_write_grad() -> tuple[Any, ...]:

    def f(self, x):
        y = self.l(x)
        v = y.view(-1)[2:5][1:]
        v.mul_(2)
        return (y, y.sum())

    return (net(f, l=nn.Linear(3, 3)), (torch.randn(2, 3),))


@case()
def input_write() -> tuple[Any, ...]:

    def f(self, x):
        x.add_(1)
        x[0] = 5
        return x * 2

    return (net(f), (torch.randn(2, 3),))


@case(state=False)
def param_nograd() -> tuple[Any, ...]:

    def f(self, x):
        with torch.no_grad():
            self.w.clamp_(-0.5, 0.5)
        return x * self.w

    return (net(f, w=nn.Parameter(torch.randn(3))), (torch.randn(3),))


@case()
def scatter() -> tuple[Any, ...]:

    def f(self, x, i):
        y = torch.zeros(5)
        y.scatter_add_(0, i, x)
        y.index_add_(0, i, x)
        y.index_put_((i,), x, accumulate=True)
        y.masked_fill_(y > 1, 0.0)
        y.put_(i, x)
        y.masked_scatter_(y > 0, x.repeat(3))
        return y

    return (net(f), (torch.randn(3), torch.tensor([0, 3, 4])))


@case()
def init() -> tuple[Any, ...]:

    def f(self, x):
        w = torch.empty(3, 3)
        nn.init.xavier_uniform_(w)
        nn.init.normal_(w[0])
        nn.init.zeros_(w[1])
        return x @ w

    return (net(f), (torch.randn(2, 3),))


@case()
def optim() -> tuple[Any, ...]:

    def f(self, x):
        p = nn.Parameter(x.clone())
        o = torch.optim.Adam([p], lr=0.1)
        with torch.enable_grad():
            for _ in range(2):
                o.zero_grad()
                (p * p).sum().backward()
                o.step()
        return p.detach() * 2

    return (net(f), (torch.randn(3),))


@case()
def vmap_inplace() -> tuple[Any, ...]:

    def f(self, x):

        def g(r):
            r = r * 1
            r.add_(1)
            r[0] = 2
            return r

        return torch.vmap(g)(x)

    return (net(f), (torch.randn(3, 2),))


@case()
def set_item_list() -> tuple[Any, ...]:

    def f(self, x):
        y = torch.zeros(4, 4)
        y[[0, 2]] = x
        y[x.new_tensor([1], dtype=torch.long)] = x[0] * 3
        y[y < 0] = 0
        y[..., 1] = x[0]
        y[None, 0] = 1
        return y

    return (net(lambda self, x: f(self, x)), (torch.randn(2, 4),))


@case()
def real_imag() -> tuple[Any, ...]:

    def f(self, x):
        c = torch.complex(x, x * 2)
        c.real.add_(1)
        c.imag[0] = 3
        torch.view_as_real(c).mul_(2)
        return (c, c.conj().imag, torch.view_as_real(c))

    return (net(f), (torch.randn(3),))


@case()
def conj_write() -> tuple[Any, ...]:

    def f(self, x):
        c = torch.complex(x, x * 2)
        d = c.conj()
        d.mul_(2j)
        return c + d

    return (net(f), (torch.randn(3),))


@case()
def complex_big() -> tuple[Any, ...]:

    def f(self, x):
        c = torch.complex(x, x * 2)
        d = c.conj()
        d[0] = 2j
        c[1] = 1
        e = d * 1
        d[2] = 5
        n = d.imag
        n[4] = 9
        return c + d + e

    return (net(f), (torch.randn(30),))


@case()
def expand_read() -> tuple[Any, ...]:

    def f(self, x):
        b = torch.zeros(40)
        e = b[:1].expand(5)
        b[0] = x[0]
        r = e * 2
        b[0] = x[1]
        return (r, e * 3)

    return (net(f), (torch.randn(3),))


@case()
def inference() -> tuple[Any, ...]:

    def f(self, x):
        with torch.inference_mode():
            y = x * 2
            y.add_(1)
            v = y[1:]
            v.mul_(2)
            y[0] = 1
            return y * 1

    return (net(f), (torch.randn(3),))


@case()
def inf_normal_write() -> tuple[Any, ...]:

    def f(self, x):
        y = x * 2
        with torch.inference_mode():
            y.add_(1)
        return y * 1

    return (net(f), (torch.randn(3),))


@case()
def reshape_ops() -> tuple[Any, ...]:

    def f(self, x):
        y = x * 2
        z = y * 1
        y.t_()
        w = y * 1
        y.unsqueeze_(0)
        y.squeeze_()
        y.resize_(2, 2)
        y.as_strided_((2,), (2,))
        return (z, w, y * 1)

    return (net(f), (torch.randn(2, 3),))


@pytest.mark.parametrize("name", case)
def test_writes(name: str) -> None:
    build, options = case[name]
    examine(build, **options)
