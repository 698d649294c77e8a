"""Edits made while the model runs: ``intervene=``, ``fork.rerun``, and what ``save=`` selects."""

from __future__ import annotations

import pytest
import torch
from plain import EditCall, edited, hooked
from torch import nn

import torchlens as tl
from torchlens.demo.models import build_gpt, build_lstm_loop, build_resnet


@pytest.fixture
def resnet():
    torch.manual_seed(1)
    return build_resnet(width=4, classes=5, layers=(1, 1))


X = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
Y = torch.randn(1, 3, 24, 24, generator=torch.Generator().manual_seed(1))


def halved(value, op=None):
    return value * 0.5


@pytest.mark.parametrize("address", ["conv1", "stages.0.0", "relu", "fc"])
def test_module_sites_live(resnet, address):
    trace = tl.trace(resnet, X, intervene=[(tl.module(address), halved)])
    assert torch.equal(trace.output, hooked(resnet, address, (X,), halved))
    edit = trace.edits[0]
    assert (edit.site, edit.engine, edit.inferred) == (f"module({address!r})", "capture", False)
    assert [op.label for op in trace.ops if op.edit is edit] == list(edit.labels)
    assert torch.equal(trace[edit.labels[0]].out, trace[address].out)


def test_sites_of_calls_live(resnet):
    names = {
        tl.func("conv2d") & tl.in_module("stages.0"): "stages.0",
        tl.params("stages.0.0.conv1"): "stages.0.0.conv1",
        tl.where(lambda op: op.func_name == "conv2d" and op.shape[1] == 8): "stages.1",
    }
    for site, within in names.items():
        trace = tl.trace(resnet, X, intervene=[(site, tl.scale(2))])
        again = tl.trace(resnet, X).fork().do(site, tl.scale(2))
        assert torch.equal(trace.output, again.output)
        assert trace.edits[0].labels == again.edits[0].labels
        assert all(trace[label].module.address.startswith(within) for label in trace.edits[0].labels)


def test_live_edits_let_gradients_through(resnet):
    trace = tl.trace(resnet, X, intervene=[(tl.module("stages.0"), tl.scale(0.5))])
    trace.output.sum().backward()
    ours = resnet.conv1.weight.grad.clone()
    resnet.zero_grad()
    handle = resnet.stages[0].register_forward_hook(lambda m, i, o: o * 0.5)
    resnet(X).sum().backward()
    handle.remove()
    assert torch.equal(ours, resnet.conv1.weight.grad)


def test_an_action_is_no_op_of_the_trace(resnet):
    plain = tl.trace(resnet, X)
    trace = tl.trace(
        resnet, X, audit=True, intervene=[(tl.module("fc"), tl.scale(2)), (tl.func("relu"), tl.clamp(0, 1))]
    )
    assert [op.label for op in trace.ops] == [op.label for op in plain.ops]
    assert trace.audit.count == 0


def test_forks_of_a_live_edited_trace_keep_its_edits(resnet):
    trace = tl.trace(resnet, X, intervene=[(tl.func("conv2d") & tl.in_module("stages.1"), halved)])
    fork = trace.fork().do(tl.label("x"), tl.zero())
    truth = tl.trace(resnet, X * 0, intervene=[(tl.func("conv2d") & tl.in_module("stages.1"), halved)])
    assert torch.equal(fork.output, truth.output)
    assert [edit.engine for edit in fork.edits] == ["capture", "replay"]


def test_rerun_on_other_inputs(resnet):
    fork = tl.trace(resnet, X).fork("half").do(tl.module("stages.0"), halved)
    assert fork.rerun(resnet, Y) is fork
    assert torch.equal(fork.output, hooked(resnet, "stages.0", (Y,), halved))
    assert fork["input_1"].shape == (1, 3, 24, 24)
    assert [edit.engine for edit in fork.edits] == ["rerun"]
    fork.do(tl.module("fc"), tl.add(1))
    assert torch.equal(fork.output, hooked(resnet, "stages.0", (Y,), halved) + 1)
    assert "half" in repr(fork)


def test_rerun_of_chosen_passes_and_outputs():
    model = build_lstm_loop()
    x, longer = torch.randn(1, 4, 8), torch.randn(1, 6, 8)
    trace = tl.trace(model, x)
    label = next(layer.label for layer in trace.layers if layer.type == "lstm_cell")
    fork = trace.fork().do(tl.label(label, passes=[2], output=1), tl.zero())
    assert torch.equal(fork.output, edited(model, (x,), EditCall("lstm_cell", 2, torch.zeros_like, 1)))
    fork.rerun(model, longer)
    assert torch.equal(fork.output, edited(model, (longer,), EditCall("lstm_cell", 2, torch.zeros_like, 1)))
    assert fork.edits[0].labels == (f"{label}:2",)


def test_rerun_with_edited_inputs_and_buffers():
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("shift", torch.arange(4.0))

        def forward(self, x, *, gain):
            return (x + self.shift) * gain

    model = Shifted()
    trace = tl.trace(model, (torch.ones(4),), {"gain": torch.tensor(2.0)})
    fork = trace.fork().do(tl.label("shift"), tl.add(1)).do(tl.label("gain"), tl.scale(10))
    assert torch.equal(fork.output, (torch.ones(4) + torch.arange(4.0) + 1) * 20)
    fork.rerun(model, (torch.zeros(4),), {"gain": torch.tensor(3.0)})
    assert torch.equal(fork.output, (torch.arange(4.0) + 1) * 30)
    assert torch.equal(model.shift, torch.arange(4.0))
    assert torch.equal(trace["shift"].value, torch.arange(4.0))
    assert [edit.labels for edit in fork.edits] == [("buffer_1",), ("input_2",)]


def test_edits_are_made_in_every_timed_run(resnet):
    seen = []
    tl.trace(
        resnet, X, repeats=3, intervene=[(tl.module("fc"), lambda value, op: (seen.append(1), value * 0)[1])]
    )
    assert len(seen) == 3


# -- save= -------------------------------------------------------------------------------------


def kept(trace):
    return [op.label for op in trace.ops if op.kind == "call" and op.out is not None]


@pytest.mark.parametrize(
    "site",
    [
        tl.func("relu"),
        tl.in_module("stages.1") & ~tl.func("batch_norm"),
        tl.params("fc"),
        tl.label("conv2d_*") | tl.label("linear_1_*"),
        tl.module("stages.0"),
        tl.where(lambda op: op.shape == (2, 5)),
    ],
    ids=str,
)
def test_save_keeps_what_a_site_selects(resnet, site):
    full = tl.trace(resnet, X)
    trace = tl.trace(resnet, X, save=site)
    wanted = [op.label for op in full.ops if op.kind == "call" and site.matches(op)]
    assert wanted
    assert kept(trace) == wanted
    assert [op.label for op in trace.ops] == [op.label for op in full.ops]
    for label in wanted:
        assert torch.equal(trace[label].out, full[label].out)
    assert [op.shape for op in trace.ops] == [op.shape for op in full.ops]


def test_save_by_a_function_of_the_op(resnet):
    trace = tl.trace(
        resnet, X, save=lambda op: op.type == "conv2d" and op.module.address == "conv1" and op.out.dim() == 4
    )
    assert kept(trace) == ["conv2d_1_1"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"save": tl.in_module("stages.9")}, "save_module_unknown"),
        ({"save": 3}, "trace_save_invalid"),
        ({"intervene": [(tl.module("stages.9"), tl.zero())]}, "intervene_module_unknown"),
        ({"intervene": [(tl.label("relu_1_3"), tl.zero())]}, "intervene_site_not_live"),
        ({"intervene": [(tl.func("relu") & ~tl.module("fc"), tl.zero())]}, "intervene_site_not_live"),
        ({"intervene": [tl.func("relu")]}, "intervene_invalid"),
        ({"intervene": [("relu", tl.zero())]}, "site_invalid"),
        ({"intervene": [(tl.func("relu"), 0)]}, "action_invalid"),
        ({"intervene": [(tl.func("relu"), tl.zero())], "fake": True}, "intervene_fake"),
    ],
)
def test_wrong_options_are_refused_before_the_model_runs(resnet, options, code):
    ran = []
    handle = resnet.register_forward_pre_hook(lambda *given: ran.append(1))
    with pytest.raises(tl.InvalidArgumentError) as caught:
        tl.trace(resnet, X, **options)
    handle.remove()
    assert caught.value.code == code
    assert not ran


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"save": tl.func("celu")}, "save_site_no_match"),
        ({"save": tl.label("celu_1_1")}, "save_site_no_match"),
        ({"intervene": [(tl.func("celu"), tl.zero())]}, "edit_site_no_match"),
    ],
)
def test_what_matches_nothing_is_refused_with_the_trace_at_hand(resnet, options, code):
    with pytest.raises(tl.InterventionError) as caught:
        tl.trace(resnet, X, **options)
    assert caught.value.code == code
    assert caught.value.trace.completed


def test_a_live_edit_that_does_not_fit_stops_the_run(resnet):
    with pytest.raises(tl.InterventionError, match="shape of call") as caught:
        tl.trace(resnet, X, intervene=[(tl.func("linear"), lambda value, op: value[:1])])
    assert caught.value.code == "edit_shape_changed"
    assert not torch.nn.modules.module._global_forward_hooks


def test_a_label_is_not_known_live(resnet):
    with pytest.raises(tl.InterventionError) as caught:
        tl.trace(resnet, X, intervene=[(tl.func("linear"), tl.swap(tl.trace(resnet, X)))])
    assert caught.value.code == "edit_label_not_live"


def test_rerun_of_another_model_is_refused(resnet):
    fork = tl.trace(resnet, X).fork().do(tl.module("stages.1"), tl.zero())
    before = fork.output
    gpt = build_gpt(width=16, layers=1, heads=2, vocabulary=10)
    with pytest.raises(tl.InterventionError) as caught:
        fork.rerun(gpt, torch.zeros(1, 3, dtype=torch.long))
    assert caught.value.code == "edit_site_no_match"
    assert fork.output is before
