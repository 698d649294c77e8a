"""Replays against the plain model edited by plain hooks, bit for bit."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from plain import EditCall, edited, hooked
from torch import nn

import torchlens as tl
from torchlens.demo.models import build_gpt, build_lstm_loop, build_resnet, build_rnn_loop


def halved(value, op=None):
    return value * 0.5 + 1


def same(fork, truth):
    assert torch.equal(fork.output, truth)


# -- known models, hooked modules --------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["conv1", "bn1", "maxpool", "stages.0.0", "stages.1.1.conv2", "stages.2", "avgpool", "fc", ""]
)
@pytest.mark.parametrize("train", [False, True])
def test_resnet_modules(address, train):
    model = build_resnet(width=8, classes=10).train(train)
    x = torch.randn(2, 3, 32, 32)
    trace = tl.trace(model, x)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fork = trace.fork().do(tl.module(address), halved)
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    same(fork, hooked(model, address, (x,), halved))


def test_every_op_of_a_resnet_block_is_what_a_plain_edit_gives():
    model = build_resnet(width=4, classes=5, layers=(1, 1))
    x = torch.randn(1, 3, 16, 16)
    trace = tl.trace(model, x)
    seen = {}
    for op in trace.ops:
        if op.kind != "call":
            continue
        number = seen[op.func_name] = seen.get(op.func_name, 0) + 1
        fork = trace.fork().do(tl.label(op.label), halved)
        same(fork, edited(model, (x,), EditCall(op.func_name, number, halved)))


@pytest.mark.parametrize("address", ["wte", "h.0.attn", "h.1.ln_2", "h.1.mlp.gelu", "h.2", "ln_f", "lm_head"])
def test_gpt_modules(address):
    model = build_gpt(width=32, layers=3, heads=2, vocabulary=50)
    ids = torch.randint(0, 50, (2, 9))
    same(tl.trace(model, ids).fork().do(tl.module(address), halved), hooked(model, address, (ids,), halved))


@pytest.mark.parametrize("output", [0, 1, 2])
@pytest.mark.parametrize("block", [1, 2])
def test_one_output_of_a_call_with_several(output, block):
    model = build_gpt(width=32, layers=2, heads=2, vocabulary=50)
    ids = torch.randint(0, 50, (1, 6))
    trace = tl.trace(model, ids)
    site = tl.func("split", output=output) & tl.in_module(f"h.{block - 1}")
    fork = trace.fork().do(site, tl.scale(3))
    same(fork, edited(model, (ids,), EditCall("split", block, lambda v: v * 3, output)))
    call = next(op for op in trace if op.func_name == "split")
    if block == 1:
        outs = fork[call.label].out
        kept = [torch.equal(new, old) for new, old in zip(outs, call.out)]
        assert [number for number, equal in enumerate(kept) if not equal] == [output]


@pytest.mark.parametrize("passes", [[1], [3], [2, 4]])
def test_chosen_passes_of_a_recurrent_layer(passes):
    model = build_rnn_loop(width=6)
    x = torch.randn(2, 5, 6)
    trace = tl.trace(model, x)
    layer = next(layer for layer in trace.layers if layer.type == "tanh")
    assert layer.num_passes == 5
    fork = trace.fork().do(tl.label(layer.label, passes=passes), tl.zero())
    assert fork.edits[0].labels == tuple(f"{layer.label}:{number}" for number in passes)

    calls = 0

    class Zero(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            nonlocal calls
            out = func(*args, **(kwargs or {}))
            if func is torch.tanh:
                calls += 1
                return out * 0 if calls in passes else out
            return out

    with torch.no_grad(), Zero():
        truth = model(x)
    same(fork, truth)


def test_a_layer_label_means_all_passes_and_a_pass_label_one():
    model = build_lstm_loop()
    trace = tl.trace(model, torch.randn(1, 4, 8))
    layer = next(layer for layer in trace.layers if layer.type == "lstm_cell")
    every = trace.fork().do(tl.label(layer.label, output=0), tl.zero())
    one = trace.fork().do(tl.label(f"{layer.label}:2", output=0), tl.zero())
    assert len(every.edits[0].labels) == 4
    assert one.edits[0].labels == (f"{layer.label}:2",)
    same(one, _lstm(model, trace, {2}))
    same(every, _lstm(model, trace, {1, 2, 3, 4}))


def _lstm(model, trace, zeroed):
    """The loop written out, with the hidden state zeroed after some steps."""
    x = trace.inputs[0].out
    h = c = torch.zeros(1, 16)
    with torch.no_grad():
        for step in range(4):
            h, c = model.cell(x[:, step], (h, c))
            h = h * 0 if step + 1 in zeroed else h
        return model.head(h)


# -- memory ------------------------------------------------------------------------------------


def program(kind):
    """Small forwards in which views and in-place writes matter."""

    def write_through_view(x):
        y = x * 2
        row = y[0]
        row.add_(5)
        return y + 1, row

    def write_base_read_view(x):
        y = x * 2
        row = y[0]
        y.mul_(3)
        return row + 0

    def buffer_filled(x):
        out = torch.zeros(3, 4)
        for i in range(3):
            out[i] = torch.tanh(x[i])
        return out * 2

    def inplace_chain(x):
        y = F.relu(x + 0.1, inplace=True)
        z = y
        y += 1
        return z * y

    def out_keyword(x):
        y = torch.empty(3, 4)
        torch.mul(x, 2, out=y)
        z = torch.sigmoid(y)
        torch.add(z, 1, out=y)
        return y, z

    def input_written(x):
        x.add_(1)
        return x * 2

    def swapped_parts(x):
        y = x.clone()
        a, b = y.chunk(2, 1)
        a.copy_(b.clone())
        b.zero_()
        return y, a.t()

    def shape_in_place(x):
        y = x + 1
        y.t_()
        y.unsqueeze_(0)
        return y * 2

    return locals()[kind]


KINDS = ["write_through_view", "write_base_read_view", "buffer_filled", "inplace_chain", "out_keyword",
         "input_written", "swapped_parts", "shape_in_place"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_views_and_writes(kind):
    forward = program(kind)
    x = torch.randn(3, 4)
    trace = tl.trace(forward, x.clone())
    before = [_copies(op.out) for op in trace.ops]
    seen = {}
    for op in [op for op in trace.ops if op.kind == "call"]:
        number = seen[op.func_name] = seen.get(op.func_name, 0) + 1
        fork = trace.fork().do(tl.label(op.label, output=0), halved)
        truth = edited(forward, (x.clone(),), EditCall(op.func_name, number, halved))
        for ours, theirs, out in zip(_list(fork.output), _list(truth), fork.outputs):
            assert torch.equal(ours, theirs), op.label
            assert torch.equal(out.out, theirs), op.label
    for op, values in zip(trace.ops, before):
        assert all(torch.equal(a, b) for a, b in zip(_copies(op.out), values)), (
            f"the parent's {op.label} changed"
        )


def _list(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _copies(value):
    return [] if value is None else [tensor.clone() for tensor in _list(value)]


def test_values_inside_a_replay_are_those_of_their_moment():
    def forward(x):
        y = x + 1
        y.mul_(2)
        y.mul_(3)
        return y

    trace = tl.trace(forward, torch.ones(2))
    fork = trace.fork().do(tl.func("add"), tl.scale(10))
    values = {op.label: op.out[0].item() for op in fork.ops if op.kind == "call"}
    assert list(values.values()) == [20, 40, 120]
    assert [op.out[0].item() for op in trace.ops if op.kind == "call"] == [2, 4, 12]


# -- randomness --------------------------------------------------------------------------------


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.first = nn.Dropout(0.4)
        self.second = nn.Dropout(0.3, inplace=True)
        self.b = nn.Linear(6, 6)
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x):
        y = self.first(torch.relu(self.a(x)))
        y = self.norm(self.b(y) + torch.randn(6) * 0.1)
        y = self.second(y)
        q = F.scaled_dot_product_attention(y[None, None], y[None, None], y[None, None], dropout_p=0.2)[0, 0]
        return F.rrelu(q, training=True) * torch.bernoulli(torch.full((6,), 0.8))


@pytest.mark.parametrize("name", ["a", "first", "norm", "second", "b"])
def test_random_draws_are_those_of_the_record(name):
    model = Noisy().train()
    x = torch.randn(8, 6)
    torch.manual_seed(5)
    trace = tl.trace(model, x)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    fork = trace.fork().do(tl.module(name), halved)
    assert torch.equal(torch.get_rng_state(), state)
    same(fork, hooked(model, name, (x,), _in_place if name == "second" else halved, seed=5))


def _in_place(out):
    return out.copy_(halved(out.clone()))


def test_an_edit_after_dropout_does_not_draw_again():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 4)).train()
    trace = tl.trace(model, torch.randn(3, 4))
    fork = trace.fork().do(tl.func("linear"), tl.scale(2))
    assert torch.equal(fork["dropout_1_1"].out, trace["dropout_1_1"].out)


def test_a_given_generator_is_replayed_in_its_state():
    def forward(x, generator):
        torch.rand(3, generator=generator)
        y = x * 2
        return torch.bernoulli(y.sigmoid(), generator=generator)

    x = torch.randn(20)
    trace = tl.trace(forward, (x, torch.Generator().manual_seed(3)))
    fork = trace.fork().do(tl.func("mul"), tl.scale(-1))
    generator = torch.Generator().manual_seed(3)
    torch.rand(3, generator=generator)
    same(fork, torch.bernoulli((x * -2).sigmoid(), generator=generator))


# -- casting, inputs, buffers ------------------------------------------------------------------


@pytest.mark.parametrize("outside", [False, True])
def test_automatic_casting_is_as_in_the_run(outside):
    model = build_gpt(width=32, layers=2, heads=2, vocabulary=50)

    def inside(ids):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(ids)

    ids = torch.randint(0, 50, (1, 6))
    if outside:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            trace = tl.trace(model, ids)
            truth = hooked(model, "h.0", (ids,), halved)
    else:
        trace = tl.trace(inside, ids)
        handle = model.h[0].register_forward_hook(lambda m, i, out: halved(out))
        with torch.no_grad():
            truth = inside(ids)
        handle.remove()
    site = tl.module("h.0") if outside else tl.module("model.h.0")
    fork = trace.fork().do(site, halved)
    assert fork.output.dtype == torch.bfloat16
    same(fork, truth)
    assert not torch.is_autocast_enabled("cpu")


def test_inputs_by_label_and_by_address():
    model = build_resnet(width=4, classes=5, layers=(1,))
    x = torch.randn(1, 3, 16, 16)
    trace = tl.trace(model, x)
    with torch.no_grad():
        truth = model(x.clamp(0, 0.5))
    for name in ("input_1", "x"):
        fork = trace.fork().do(tl.label(name), tl.clamp(0, 0.5))
        same(fork, truth)
        assert fork.edits[0].labels == ("input_1",)
        assert torch.equal(fork["input_1"].out, x.clamp(0, 0.5))
    assert torch.equal(trace["input_1"].out, x)


@pytest.mark.parametrize("train", [False, True])
def test_buffers(train):
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("shift", torch.arange(4.0))
            self.norm = nn.BatchNorm1d(4)

        def forward(self, x):
            return self.norm(x + self.shift) * self.norm.running_var

    model = Shifted().train(train)
    x = torch.randn(5, 4)
    trace = tl.trace(model, x)
    for address in ("shift", "norm.running_var"):
        fork = trace.fork().do(tl.label(address), tl.add(2))
        kept = {name: tensor.clone() for name, tensor in model.named_buffers()}
        dict(model.named_buffers())[address].add_(2)
        with torch.no_grad():
            truth = model(x)
        for name, tensor in model.named_buffers():
            tensor.copy_(kept[name])
        same(fork, truth)
        trace = tl.trace(model, x)


# -- several edits -----------------------------------------------------------------------------


def test_edits_add_up_in_any_order():
    model = build_resnet(width=4, classes=5)
    x = torch.randn(1, 3, 32, 32)
    trace = tl.trace(model, x)
    addresses = ["stages.1", "stages.0", "stages.2"]
    handles = [
        dict(model.named_modules())[a].register_forward_hook(lambda m, i, o: halved(o)) for a in addresses
    ]
    with torch.no_grad():
        truth = model(x)
    for handle in handles:
        handle.remove()
    fork = trace.fork()
    for address in addresses:
        fork.do(tl.module(address), halved)
    same(fork, truth)
    together = trace.fork().do(tl.module("stages.0") | tl.module("stages.1") | tl.module("stages.2"), halved)
    same(together, truth)


def test_two_edits_of_one_op_are_made_in_their_order():
    trace = tl.trace(lambda x: (x + 1).mul_(2) + 0, torch.zeros(2))
    fork = trace.fork().do(tl.func("mul_"), tl.add(1)).do(tl.func("mul_"), tl.scale(10))
    assert fork.output.tolist() == [30, 30]
    fork.do(tl.func("add") & tl.where(lambda op: op.step < 2), tl.add(1))
    assert fork.output.tolist() == [50, 50]


def test_forks_of_forks():
    trace = tl.trace(lambda x: torch.tanh(x * 2) + 1, torch.ones(2))
    first = trace.fork("first").do(tl.func("mul"), tl.scale(0))
    second = first.fork("second").do(tl.func("tanh"), tl.add(3))
    assert (first.output.tolist(), second.output.tolist()) == ([1, 1], [4, 4])
    assert second.parent is first
    assert first.parent is trace
    assert [edit.action for edit in second.edits] == ["scale(0)", "add(3)"]
    assert len(first.edits) == 1
    assert trace.edits == []


def test_a_plain_trace_is_never_edited_in_place():
    trace = tl.trace(lambda x: x * 2, torch.ones(2))
    fork = trace.do(tl.func("mul"), tl.zero())
    assert fork is not trace
    assert fork.output.tolist() == [0, 0]
    assert trace.output.tolist() == [2, 2]
    assert trace["mul_1_1"].edit is None
    assert fork["mul_1_1"].edit is fork.edits[0]


def test_only_what_depends_on_the_site_is_run_again():
    ran = []

    def forward(x):
        a = torch.special.erf(x)
        b = torch.tanh(x)
        return torch.exp(b) + a

    trace = tl.trace(forward, torch.randn(3))

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            ran.append(func.name())
            return func(*args, **(kwargs or {}))

    with Watch():
        trace.fork().do(tl.func("tanh"), tl.zero())
    assert "aten::exp" in ran
    assert not {"aten::erf", "aten::special_erf", "aten::tanh"} & set(ran)


def test_outputs_come_back_in_their_containers():
    from collections import OrderedDict

    def forward(x):
        y = x * 2
        return OrderedDict(first=y, rest=[x + 1, (y.sum(), "text", 3)])

    trace = tl.trace(forward, torch.ones(2))
    fork = trace.fork().do(tl.func("mul"), tl.zero())
    assert type(fork.output) is OrderedDict
    assert fork.output["first"].tolist() == [0, 0]
    assert fork.output["rest"][0] is trace.output["rest"][0]
    assert fork.output["rest"][1][1:] == ("text", 3)
    assert fork.output["rest"][1][0].item() == 0
    assert trace.output["first"].tolist() == [2, 2]
