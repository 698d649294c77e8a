"""Passes of layers on small programs whose loops are plain to see."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import torchlens as tl


def passes(trace, *, only=None):
    """Number of passes of each layer, by type, layers in order."""
    found = {}
    for layer in trace.layers:
        if layer.kind == "call" and (only is None or layer.type in only):
            found.setdefault(layer.type, []).append(layer.num_passes)
    return found


class Program(nn.Module):
    """A module whose forward is a given function of itself and its input."""

    def __init__(self, body, **parts):
        super().__init__()
        self.body = [body]
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args):
        return self.body[0](self, *args)


def lin(n=4):
    return nn.Linear(n, n)


def stack(count=3, make=lin):
    return nn.ModuleList(make() for _ in range(count))


X = torch.linspace(-1, 1, 8).view(2, 4)
CASES = {}


def case(expected, *, x=X, **parts):
    """Register ``body(self, x)`` with the parts it needs and the passes it must show."""

    def register(body):
        CASES[body.__name__] = (body, parts, x, expected)
        return body

    return register


# -- loops that share weights -------------------------------------------------------------------------


@case({"linear": [3], "relu": [3]}, l=lin)
def loop_over_one_layer(self, x):
    for _ in range(3):
        x = torch.relu(self.l(x))
    return x


@case(
    {"zeros": [1], "getitem": [3], "linear": [3, 3, 1], "add": [3], "tanh": [3]},
    x=torch.ones(3, 2, 4),
    i=lin,
    h=lin,
    o=lin,
)
def elman(self, x):
    h = torch.zeros(2, 4)
    for t in range(3):
        h = torch.tanh(self.i(x[t]) + self.h(h))
    return self.o(h)


@case(
    {"split": [1], "zeros": [1], "lstm_cell": [3], "cat": [1]},
    x=torch.ones(3, 4),
    cell=lambda: nn.LSTMCell(4, 4),
)
def lstm_cell_over_split(self, x):
    out, state = [], None
    for part in x.split(1):
        state = self.cell(part, state)
        out.append(state[0])
    return torch.cat(out)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = lin()

    def forward(self, x):
        return torch.relu(self.l(x))


@case({"linear": [2], "relu": [2], "sigmoid": [1]}, b=Block)
def shared_block_at_two_sites(self, x):
    return self.b(torch.sigmoid(self.b(x)))


@case({"linear": [2], "relu": [2], "sub": [1]}, b=Block)
def siamese_towers(self, x):
    return self.b(x) - self.b(x)


@case({"linear": [6], "relu": [6], "sigmoid": [2]}, l=lin)
def nested_loops(self, x):
    for _ in range(2):
        for _ in range(3):
            x = torch.relu(self.l(x))
        x = torch.sigmoid(x)
    return x


@case({"linear": [2], "relu": [1, 1]}, l=lin)
def shared_layer_twice_on_one_line(self, x):
    return torch.relu(self.l(torch.relu(self.l(x))))


@case({"linear": [2, 2], "relu": [2], "tanh": [2]}, a=lin, b=lin)
def alternating_arms(self, x):
    for step in range(4):
        x = torch.tanh(self.b(x)) if step % 2 else torch.relu(self.a(x))
    return x


@case({"linear": [1, 1, 1], "layer_norm": [3], "relu": [3]}, ls=stack, n=lambda: nn.LayerNorm(4))
def different_layers_one_shared_norm(self, x):
    for layer in self.ls:
        x = torch.relu(self.n(layer(x)))
    return x


@case({"linear": [4, 1], "relu": [4]}, l=lin, extra=lin)
def one_off_layer_in_a_loop(self, x):
    for step in range(4):
        x = torch.relu(self.l(x))
        if step == 1:
            x = self.extra(x)
    return x


@case({"linear": [3], "relu": [3], "add": [1]}, l=lin)
def loop_whose_steps_differ(self, x):
    for step in range(3):
        x = torch.relu(self.l(x))
        if step == 2:
            x = x + 1
    return x


@case({"linear": [3], "relu": [3]}, l=lin)
def recursion(self, x):
    def down(x, depth):
        return x if depth == 0 else down(torch.relu(self.l(x)), depth - 1)

    return down(x, 3)


@case({"linear": [4], "relu": [3]}, l=lin)
def recursion_with_work_on_the_way_up(self, x):
    def down(x, depth):
        return self.l(x) if depth == 0 else torch.relu(self.l(down(x, depth - 1)))

    return down(x, 3)


@case({"linear": [2], "add": [1]}, l=lin)
def parallel_branches_of_one_layer(self, x):
    return self.l(x) + self.l(x)


@case({"linear": [3], "relu": [3]}, l=lin)
def no_grad_in_a_loop(self, x):
    for _ in range(3):
        with torch.no_grad():
            x = torch.relu(self.l(x))
    return x


@case({"linear": [3], "relu": [3]}, l=lin)
def decorated_step_in_a_loop(self, x):
    @torch.no_grad()
    def step(x):
        return torch.relu(self.l(x))

    for _ in range(3):
        x = step(x)
    return x


@case({"linear": [3], "relu": [3]}, l=lin)
def checkpointed_lambda_in_a_loop(self, x):
    for _ in range(3):
        x = checkpoint(lambda v: torch.relu(self.l(v)), x, use_reentrant=False)
    return x


@case({"linear": [3], "relu": [3]}, l=lin)
def function_made_inside_the_loop(self, x):
    for _ in range(3):

        def step(v):
            return torch.relu(self.l(v))

        x = step(x)
    return x


@case({"linear": [3], "relu": [3]}, l=lin)
def function_compiled_anew_by_exec(self, x):
    for _ in range(3):
        scope = {"torch": torch}
        exec("def step(layer, v):\n    return torch.relu(layer(v))", scope)
        x = scope["step"](self.l, x)
    return x


@case({"linear": [3], "relu": [3]}, l=lin)
def map_over_steps(self, x):
    state = [x]

    def step(_):
        state[0] = torch.relu(self.l(state[0]))
        return state[0]

    return list(map(step, range(3)))[-1]


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("angle", torch.ones(4))

    def forward(self, x):
        return x * self.angle


@case({"mul": [3], "linear": [1, 1, 1]}, r=Rotary, ls=stack)
def shared_buffer_module_before_different_layers(self, x):
    for layer in self.ls:
        x = layer(self.r(x))
    return x


# -- loops that carry data ------------------------------------------------------------------------------


@case({"sin": [4], "add": [4]})
def parameter_free_loop(self, x):
    for _ in range(4):
        x = torch.sin(x) + 1
    return x


@case({"sin": [3], "add": [3], "ones": [3]})
def loop_with_an_op_off_the_path(self, x):
    for _ in range(3):
        x = torch.sin(x) + torch.ones(4)
    return x


@case({"sin": [6], "mul": [2]})
def nested_parameter_free_loops(self, x):
    for _ in range(2):
        for _ in range(3):
            x = torch.sin(x)
        x = x * 2
    return x


# -- what only looks like a loop ------------------------------------------------------------------------


@case({"linear": [1, 1], "relu": [1, 1]}, s=lambda: nn.Sequential(lin(), nn.ReLU(), lin(), nn.ReLU()))
def sequential_with_relu_modules(self, x):
    return self.s(x)


def _one_relu():
    relu = nn.ReLU()
    return nn.Sequential(lin(), relu, lin(), relu)


@case({"linear": [1, 1], "relu": [1, 1]}, s=_one_relu)
def sequential_with_one_relu_twice(self, x):
    return self.s(x)


@case({"relu": [1, 1]}, acts=lambda: nn.ModuleList([nn.ReLU(), nn.ReLU()]))
def different_modules_without_weights(self, x):
    for act in self.acts:
        x = act(x)
    return x


@case({"linear": [1, 1, 1], "relu": [1, 1, 1]}, ls=stack)
def different_layers_at_one_site(self, x):
    for layer in self.ls:
        x = F.relu(layer(x))
    return x


@case({"linear": [1, 1, 1], "relu": [1, 1, 1]}, ls=stack)
def reduce_over_modules(self, x):
    return functools.reduce(lambda v, layer: torch.relu(layer(v)), self.ls, x)


@case({"linear": [1, 1, 1], "relu": [1, 1, 1], "stack": [1]}, ls=stack)
def comprehension_over_experts(self, x):
    return torch.stack([torch.relu(layer(x)) for layer in self.ls])


@case({"linear": [1] * 4, "add": [1] * 4}, a=lambda: stack(2), f=lambda: stack(2))
def residual_adds_outside_the_blocks(self, x):
    for attn, ff in zip(self.a, self.f, strict=False):
        x = attn(x) + x
        x = ff(x) + x
    return x


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x


@case({"linear": [1, 1], "add": [1, 1]}, s=lambda: nn.Sequential(Residual(lin()), Residual(lin())))
def residual_wrappers(self, x):
    return self.s(x)


@case({"split": [1], "view": [1] * 3, "transpose": [1] * 3, "cat": [1]}, x=torch.ones(2, 6))
def views_of_q_k_v(self, x):
    return torch.cat([t.view(2, 2, 1).transpose(1, 2) for t in x.split(2, dim=-1)])


@case({"linear": [1] * 3, "view": [1] * 3, "cat": [1]}, q=lin, k=lin, v=lin)
def projections_in_a_loop(self, x):
    out = []
    for layer in (self.q, self.k, self.v):
        out.append(layer(x).view(2, 2, 2))
    return torch.cat(out)


@case(
    {"linear": [1] * 4, "relu": [1] * 4, "cat": [1] * 2},
    down=lambda: stack(2),
    up=lambda: nn.ModuleList([nn.Linear(8, 4), nn.Linear(8, 4)]),
)
def unet_loops(self, x):
    kept = []
    for layer in self.down:
        x = torch.relu(layer(x))
        kept.append(x)
    for layer in self.up:
        x = torch.relu(layer(torch.cat([x, kept.pop()], dim=-1)))
    return x


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3, 4, 4) / 4)
        self.b = nn.Parameter(torch.zeros(3, 4))
        self.gates = nn.Parameter(torch.ones(3))

    def forward(self, x):
        for i in range(3):
            x = F.gelu((x + self.b[i]) @ self.w[i])
        return x


@case({"getitem": [1] * 6, "add": [1] * 3, "matmul": [1] * 3, "gelu": [1] * 3}, m=Stacked)
def slices_of_a_stacked_weight(self, x):
    return self.m(x)


@case(
    {"linear": [1] * 3, "getitem": [1] * 3, "mul": [1] * 3, "add": [1] * 3},
    ls=stack,
    g=lambda: nn.Parameter(torch.ones(3)),
)
def gates_that_scale_different_blocks(self, x):
    for k, layer in enumerate(self.ls):
        x = x + self.g[k] * layer(x)
    return x


@case({"matmul": [1] * 3, "relu": [1] * 3}, ws=lambda: nn.ParameterList(torch.eye(4) for _ in range(3)))
def parameter_list(self, x):
    for w in self.ws:
        x = torch.relu(x @ w)
    return x


@case({"matmul": [3], "relu": [3]}, w=lambda: nn.Parameter(torch.eye(4)))
def one_parameter_used_three_times(self, x):
    for _ in range(3):
        x = torch.relu(x @ self.w)
    return x


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(4, 12), lin()

    def forward(self, x):
        q, k, v = (t.view(2, 2, 2) for t in self.qkv(x).chunk(3, dim=-1))
        return self.out((torch.softmax(q @ k.transpose(-1, -2), -1) @ v).view(2, 4))


class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2, self.a = nn.LayerNorm(4), nn.LayerNorm(4), Attention()
        self.f = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.f(self.n2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(GptBlock() for _ in range(3)), lin()

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)

    def generate(self, x, tokens):
        for _ in range(tokens):
            x = self(x).softmax(-1)
        return x


@pytest.mark.parametrize("name", CASES)
def test_program(name):
    body, parts, x, expected = CASES[name]
    torch.manual_seed(0)
    model = Program(body, **{key: make() for key, make in parts.items()})
    trace = tl.trace(model, x)
    assert passes(trace) == expected
    assert trace.is_recurrent == any(n > 1 for counts in expected.values() for n in counts)


@pytest.mark.parametrize("save", [True, False])
def test_gpt_of_different_blocks_has_no_recurrence(save):
    trace = tl.trace(Gpt(), X, save=save)
    assert all(layer.num_passes == 1 for layer in trace.layers)
    assert not trace.is_recurrent


@pytest.mark.parametrize("tokens", [3, 5])
def test_gpt_that_generates_has_one_pass_a_token(tokens):
    trace = tl.trace(Gpt().generate, (X, tokens))
    assert {layer.num_passes for layer in trace.layers if layer.kind == "call"} == {tokens}
    assert len(trace["linear_1_2"].ops) == tokens


def test_albert_has_one_pass_a_use():
    class Albert(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = GptBlock()

        def forward(self, x):
            for _ in range(12):
                x = self.layer(x)
            return x

    trace = tl.trace(Albert(), X)
    assert {layer.num_passes for layer in trace.layers if layer.kind == "call"} == {12}


def test_a_vit_with_adds_in_its_own_forward_is_no_loop():
    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.ModuleList([Attention(), nn.Sequential(lin(), nn.GELU())]) for _ in range(3)
            )

        def forward(self, x):
            for attn, ff in self.layers:
                x = attn(x) + x
                x = ff(x) + x
            return x

    assert passes(tl.trace(Vit(), X), only=["add"]) == {"add": [1] * 6}


def test_groups_of_two_modules_never_join_the_modules():
    class Groups(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = lin(), lin()

        def forward(self, x):
            for layer in [self.a] * 3 + [self.b] * 3:
                x = torch.relu(layer(x))
            return x

    assert passes(tl.trace(Groups(), X), only=["linear"]) == {"linear": [3, 3]}


def test_passes_are_labelled_in_order():
    body, _, _, _ = CASES["loop_over_one_layer"]
    trace = tl.trace(Program(body, l=lin()), X)
    layer = trace["linear_1_1"]
    assert [op.label for op in layer.ops] == ["linear_1_1:1", "linear_1_1:2", "linear_1_1:3"]
    assert [op.pass_index for op in trace["relu_1_2"].ops] == [1, 2, 3]
    assert trace["relu_1_2:3"].parents == [trace["linear_1_1:3"]]


def test_a_function_without_modules_may_loop_too():
    def doubled(x):
        for _ in range(5):
            x = x * 2
        return x

    trace = tl.trace(doubled, X)
    assert passes(trace) == {"mul": [5]}
    assert trace.is_recurrent


def test_long_loops_are_followed_over_many_sweeps():
    def long(x):
        for _ in range(3000):
            x = torch.sin(x) + 1
        return x

    assert passes(tl.trace(long, X)) == {"sin": [3000], "add": [3000]}


def test_recursion_deeper_than_the_record_of_sites():
    layer = lin()

    def down(x, depth):
        return x if depth == 0 else down(torch.relu(layer(x)), depth - 1)

    assert passes(tl.trace(down, (X, 300))) == {"linear": [300], "relu": [300]}
