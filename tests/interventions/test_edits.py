"""Sites, actions and records: what they mean, how they read, what they refuse."""

from __future__ import annotations

import gc
import pickle
import weakref

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.capture.recording import EditRecord
from torchlens.demo.models import build_gpt, build_resnet
from torchlens.interventions.census import census_text
from torchlens.interventions.changes import changes
from torchlens.interventions.fork import attach
from torchlens.interventions.sites import parse_site


@pytest.fixture
def trace():
    torch.manual_seed(2)
    return tl.trace(build_resnet(width=4, classes=5, layers=(1, 1)), torch.randn(1, 3, 16, 16))


def labels(trace, site):
    return [op.label for op in trace.ops if site.matches(op)]


def by_hand(trace, test):
    return [op.label for op in trace.ops if op.kind == "call" and test(op)]


# -- sites -------------------------------------------------------------------------------------


def test_sites_join(trace):
    relu, inside = tl.func("relu"), tl.in_module("stages.1")
    both = by_hand(trace, lambda op: op.func_name == "relu" and "stages.1" in [m.address for m in op.modules])
    assert labels(trace, relu & inside) == both
    assert both
    rest = by_hand(trace, lambda op: op.func_name == "relu" and op.label not in both)
    assert labels(trace, relu & ~inside) == rest
    assert labels(trace, (relu & ~inside) | (relu & inside)) == labels(trace, relu)


def test_functions_are_named_in_full_or_plainly():
    trace = tl.trace(lambda x: (x + 1).add_(2) + x, torch.ones(2))
    assert labels(trace, tl.func("add_")) == ["add_2_2"]
    assert labels(trace, tl.func("add")) == ["add_1_1", "add_2_2", "add_3_3"]
    assert labels(trace, tl.func("a*_")) == ["add_2_2"]


def test_params_are_found_by_address_prefix_and_through_views():
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(3, 3)

        def forward(self, x):
            return self.body(x) @ self.body.weight.t()

    trace = tl.trace(Tied(), torch.ones(1, 3))
    assert labels(trace, tl.params("body")) == ["linear_1_1", "t_1_2", "matmul_1_3"]
    assert labels(trace, tl.params("body.bias")) == ["linear_1_1"]
    assert labels(trace, tl.params("bod")) == []
    assert labels(trace, tl.params()) == labels(trace, tl.params("body"))


def test_a_module_site_is_what_the_module_returns(trace):
    assert labels(trace, tl.module("stages.0")) == [trace["stages.0"].ops[-1].label]
    assert labels(trace, tl.module("")) == [trace.outputs[0].parents[0].label]


@pytest.mark.parametrize(
    "site",
    [
        tl.label("relu_1_2"),
        tl.label("relu_1_2", passes=[2, 3], output=1),
        tl.label("x", output=(0, 1)),
        tl.func("relu") & tl.in_module("layer2"),
        (tl.func("relu") | tl.func("gelu")) & ~tl.params("h.*.mlp"),
        ~(tl.module("a") & tl.module("b", output=0)),
        tl.func("a") | tl.func("b") | tl.func("c"),
    ],
    ids=str,
)
def test_the_text_of_a_site_reads_back(site):
    again = parse_site(str(site))
    assert str(again) == str(site)
    hash(again)
    ops = tl.trace(
        build_gpt(width=8, layers=2, heads=2, vocabulary=9), torch.zeros(1, 3, dtype=torch.long)
    ).ops
    assert [again.matches(op) for op in ops] == [site.matches(op) for op in ops]


def test_a_where_reads_back_without_its_function(trace):
    again = parse_site(str(tl.where(lambda op: True)))
    assert labels(trace, again) == []
    assert "lambda" in str(again)
    with pytest.raises(tl.InvalidArgumentError) as caught:
        parse_site("__import__('os')")
    assert caught.value.code == "site_text_invalid"


# -- actions -----------------------------------------------------------------------------------


V = torch.tensor([[-2.0, 1.0, 3.0], [0.0, 4.0, -1.0]])


@pytest.mark.parametrize(
    ("action", "wanted", "text"),
    [
        (tl.zero(), torch.zeros(2, 3), "zero()"),
        (tl.mean(), torch.full((2, 3), V.mean().item()), "mean()"),
        (tl.mean(1), V.mean(1, keepdim=True).expand(2, 3), "mean(dim=1)"),
        (tl.scale(0.5), V / 2, "scale(0.5)"),
        (tl.add(torch.arange(3.0)), V + torch.arange(3.0), "add(float32[3])"),
        (tl.clamp(min=-1, max=2), V.clamp(-1, 2), "clamp(min=-1, max=2)"),
        (tl.replace(7), torch.full((2, 3), 7.0), "replace(7)"),
        (tl.replace(torch.ones(2, 3)), torch.ones(2, 3), "replace(float32[2, 3])"),
    ],
    ids=str,
)
def test_actions(action, wanted, text):
    trace = tl.trace(lambda x: x * 1.0, V)
    fork = trace.fork().do(tl.func("mul"), action)
    assert torch.equal(fork.output, wanted)
    assert fork.edits[0].action == text


def test_replace_at_an_index():
    fork = tl.trace(lambda x: x * 1.0, V).fork().do(tl.func("mul"), tl.replace(9, index=(slice(None), -1)))
    assert fork.output.tolist() == [[-2, 1, 9], [0, 4, 9]]


def test_noise_is_the_same_for_the_same_seed():
    trace = tl.trace(lambda x: x * 1.0, torch.zeros(1000))
    state = torch.get_rng_state()
    one, same, other = (
        trace.fork().do(tl.func("mul"), tl.noise(2.0, seed=seed)).output for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert 1.8 < one.std().item() < 2.2
    assert torch.equal(torch.get_rng_state(), state)


def test_swap_puts_in_the_value_of_another_run():
    model = build_gpt(width=16, layers=2, heads=2, vocabulary=20)
    clean, other = (tl.trace(model, torch.tensor([ids])) for ids in ([1, 2, 3], [4, 5, 6]))
    whole = clean.fork().do(tl.module("h.1"), tl.swap(other))
    assert torch.equal(whole.output, other.output)
    last = clean.fork().do(tl.module("h.1"), tl.swap(other, index=(slice(None), -1)))
    assert torch.equal(last.output[:, :2], clean.output[:, :2])
    assert torch.allclose(last.output[:, 2], other.output[:, 2], atol=1e-5)


def test_an_action_that_writes_to_what_it_is_given_harms_nobody():
    trace = tl.trace(lambda x: x * 2 + 1, torch.ones(3))
    fork = trace.fork().do(tl.func("mul"), lambda value, op: value.zero_())
    assert fork.output.tolist() == [1, 1, 1]
    assert trace["mul_1_1"].out.tolist() == [2, 2, 2]
    kept = torch.full((3,), 5.0)
    fork = trace.fork().do(tl.func("mul"), lambda value, op: kept)
    kept.zero_()
    assert fork["mul_1_1"].out.tolist() == [5, 5, 5]


# -- refusals ----------------------------------------------------------------------------------


def refused(trace, site, action, code, *, op=""):
    """The edit is refused, and neither fork nor trace has changed."""
    fork = trace.fork()
    before = [None if o.out is None else (o.out if isinstance(o.out, tuple) else (o.out,)) for o in trace.ops]
    with pytest.raises(tl.InterventionError) as caught:
        fork.do(site, action)
    assert caught.value.code == code
    assert caught.value.op == op
    assert caught.value.remedy
    assert caught.value.remedy in str(caught.value)
    assert not hasattr(caught.value, "__notes__")
    assert fork.edits == []
    assert fork.output is trace.output
    for ours, theirs in zip(fork.ops, before):
        values = ours.out if isinstance(ours.out, tuple) else (ours.out,)
        assert theirs is None or all(a is None or torch.equal(a, b) for a, b in zip(values, theirs))
    return str(caught.value)


def test_no_match_names_the_nearest(trace):
    text = refused(trace, tl.label("relu_1_33"), tl.zero(), "edit_site_no_match")
    assert "relu_1_3" in text
    assert "stages.1" in refused(trace, tl.in_module("stage.1"), tl.zero(), "edit_site_no_match")
    made = trace.outputs[0].parents[0].label
    assert made in refused(trace, tl.label("output_1"), tl.zero(), "edit_site_no_match")


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (lambda value, op: value[:, :1], "edit_shape_changed"),
        (lambda value, op: value.double(), "edit_dtype_changed"),
        (lambda value, op: value.to("meta"), "edit_device_changed"),
        (lambda value, op: None, "edit_value_invalid"),
        (tl.replace(torch.ones(3)), "edit_shape_changed"),
    ],
)
def test_a_value_that_does_not_fit(trace, action, code):
    refused(trace, tl.label("relu_1_3"), action, code, op="relu_1_3")


def test_a_wrong_value_is_refused_before_anything_is_recomputed(trace):
    ran = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            ran.append(func.name())
            return func(*args, **(kwargs or {}))

    last = [op for op in trace.ops if op.func_name == "relu"][-1]
    first = trace["conv2d_1_1"].ops[0]
    site = tl.label(first.label) | tl.label(last.label)
    with Watch(), pytest.raises(tl.InterventionError) as caught:
        trace.fork().do(site, tl.replace(torch.ones(last.shape)))
    assert caught.value.op == first.label
    with Watch(), pytest.raises(tl.InterventionError) as caught:
        trace.fork().do(site, tl.replace(torch.ones(first.shape)))
    assert caught.value.op == last.label
    assert not [name for name in ran if "conv" in name or "relu" in name]


def test_several_outputs_need_a_choice():
    trace = tl.trace(lambda x: x.chunk(2), torch.ones(4))
    assert "output=" in refused(trace, tl.func("chunk"), tl.zero(), "edit_output_ambiguous", op="chunk_1_1")
    refused(trace, tl.func("chunk", output=2), tl.zero(), "edit_output_missing", op="chunk_1_1")
    both = trace.fork().do(tl.func("chunk", output=(0, 1)), tl.zero())
    assert [part.tolist() for part in both.output] == [[0, 0], [0, 0]]


def test_values_that_were_not_kept():
    def forward(x):
        return torch.exp(torch.tanh(x) * torch.sigmoid(x))

    trace = tl.trace(forward, torch.ones(2), save=tl.func("tanh"))
    text = refused(trace, tl.func("tanh"), tl.zero(), "edit_value_missing", op="sigmoid_1_2")
    assert "save=True" in text
    refused(trace, tl.func("mul"), tl.zero(), "edit_value_missing", op="mul_1_3")
    lean = tl.trace(forward, torch.ones(2), save=False)
    refused(lean, tl.label("input_1"), tl.zero(), "edit_value_missing", op="input_1")


def test_weights_that_have_changed_since():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    trace = tl.trace(model, torch.ones(1, 2))
    with torch.no_grad():
        model[1].weight.add_(1)
    refused(trace, tl.label("linear_1_1"), tl.zero(), "edit_value_missing", op="1.weight")


def test_an_action_that_raises(trace):
    def broken(value, op):
        raise KeyError("mine")

    fork = trace.fork()
    with pytest.raises(KeyError, match="mine") as caught:
        fork.do(tl.label("relu_1_3"), broken)
    assert any("relu_1_3" in note for note in caught.value.__notes__)
    assert fork.edits == []
    assert fork.output is trace.output


def test_a_fake_trace():
    trace = tl.trace(nn.Linear(2, 2), torch.ones(1, 2), fake=True)
    with pytest.raises(tl.InterventionError) as caught:
        trace.fork().do(tl.func("linear"), tl.zero())
    assert caught.value.code == "edit_trace_fake"


@pytest.mark.filterwarnings("ignore:.*jit.script.*:DeprecationWarning")
def test_an_opaque_op():
    model = nn.Sequential(nn.Linear(2, 2), torch.jit.script(nn.Linear(2, 2)))
    trace = tl.trace(model, torch.ones(1, 2))
    opaque = next(op for op in trace.ops if op.kind == "call" and op.record.func is None)
    refused(trace, tl.label("linear_1_1"), tl.zero(), "edit_op_opaque", op=opaque.label)
    edited = trace.fork().do(tl.label(opaque.label), tl.zero())
    assert edited.output.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    "read", [lambda y: y.sum().item(), lambda y: float(y.max()), lambda y: y.tolist()[0]]
)
def test_a_value_that_python_read(read):
    def forward(x):
        y = x * 2
        return x + read(y)

    trace = tl.trace(forward, torch.tensor([1.0, 2.0]))
    fork = trace.fork()
    with pytest.raises(tl.InterventionError) as caught:
        fork.do(tl.func("mul"), tl.scale(3))
    assert caught.value.code == "edit_read_by_python"
    assert "rerun" in caught.value.remedy
    assert fork.edits == []


def test_a_branch_with_another_outcome():
    def forward(x):
        y = x * 2
        return y + 1 if y.sum() > 0 else y - 1

    trace = tl.trace(forward, torch.ones(2))
    assert trace.fork().do(tl.func("mul"), tl.scale(3)).output.tolist() == [7, 7]
    refused(trace, tl.func("mul"), tl.scale(-3), "edit_read_by_python", op="gt_1_3")


def test_numpy_in_the_middle():
    def forward(x):
        y = x * 2
        return torch.from_numpy(y.numpy() + 1) * 3

    refused(tl.trace(forward, torch.ones(2)), tl.func("mul") & tl.where(lambda op: op.step < 2), tl.zero(),
            "edit_read_by_python", op="mul_1_1")  # fmt: skip


@pytest.mark.parametrize(
    ("site", "action", "code"),
    [
        ("relu", tl.zero(), "site_invalid"),
        (tl.func("relu"), 3, "action_invalid"),
        (tl.func("relu"), torch.ones(1), "action_invalid"),
        (tl.func("relu"), nn.ReLU, "action_invalid"),
    ],
)
def test_what_is_no_site_or_action(trace, site, action, code):
    with pytest.raises(tl.InvalidArgumentError) as caught:
        trace.fork().do(site, action)
    assert caught.value.code == code


# -- the record --------------------------------------------------------------------------------


def test_the_record(trace):
    fork = trace.fork("ablate").do(tl.func("relu") & tl.in_module("stages.1"), tl.scale(0.5))
    hit = labels(trace, tl.func("relu") & tl.in_module("stages.1"))
    assert fork.edits == [
        EditRecord("func('relu') & in_module('stages.1')", "scale(0.5)", "replay", tuple(hit), False)
    ]
    assert fork.name == "ablate"
    assert [op.label for op in fork.ops if op.edit is not None] == hit
    data = fork.edits[0].as_dict()
    assert EditRecord.from_dict(data, confirmed=True) == fork.edits[0]
    assert EditRecord.from_dict(data).inferred
    assert pickle.loads(pickle.dumps(fork.edits)) == fork.edits


def test_edits_known_only_from_the_record(trace):
    record = EditRecord("label('relu_1_3')", "mine", "replay", ("relu_1_3", "gone_1_1"))
    loaded = attach(trace, [record])
    assert changes(loaded).edited == {trace["relu_1_3"].step: True}
    text = census_text(loaded)
    assert "relu_1_3 (inferred)" in text
    assert "gone_1_1 (inferred, the trace has no such op)" in text
    with pytest.raises(tl.InterventionError) as caught:
        loaded.do(tl.label("conv2d_1_1"), tl.zero())
    assert caught.value.code == "edit_action_unknown"
    assert caught.value.op == "relu_1_3"
    later = loaded.do(tl.module("fc"), tl.zero())
    assert later.output.tolist() == [[0] * 5]


# -- what changed ------------------------------------------------------------------------------


def test_changes_are_of_value_not_of_reach():
    def forward(x):
        y = x * 2
        return torch.relu(y) + 1, y.detach() - 1

    trace = tl.trace(forward, torch.tensor([-1.0, -2.0]))
    fork = trace.fork().do(tl.func("mul"), tl.scale(2))
    found = changes(fork)
    step = {op.label: op.step for op in fork.ops}
    assert found.edited == {step["mul_1_1"]: False}
    assert found.changed == {step["detach_1_4"]: 4.0, step["sub_1_5"]: 4.0, step["output_2"]: 4.0}
    assert found.compared == len(fork.ops) - 1
    assert not found.unclear


def test_changes_without_values_say_so():
    trace = tl.trace(lambda x: torch.tanh(x) + 1, torch.ones(2), save=tl.func("tanh"))
    fork = trace.fork().do(tl.func("tanh"), tl.zero())
    found = changes(fork)
    assert [fork.ops[step].label for step in found.unknown] == ["add_1_2", "output_1"]
    assert "Not comparable" in census_text(fork)


def test_nan_and_infinity_are_compared_as_values():
    trace = tl.trace(lambda x: torch.log(x * 1.0), torch.tensor([-1.0, 0.0, 1.0]))
    fork = trace.fork().do(tl.func("mul"), tl.replace(torch.tensor([-2.0, 0.0, 1.0])))
    assert not changes(fork).changed
    fork = trace.fork().do(tl.func("mul"), tl.replace(torch.tensor([1.0, 0.0, 1.0])))
    assert changes(fork).changed[fork["log_1_2"].step] == float("inf")


# -- sharing -----------------------------------------------------------------------------------


def storages(trace):
    """Bytes of all kept memory, by identity."""
    found = {}
    for op in trace.ops:
        for record in op.records:
            if record.kept is not None:
                storage = record.kept.untyped_storage()
                found[storage._cdata] = storage.nbytes()
    return found


def test_a_fork_costs_only_what_changed():
    model = build_gpt(width=64, layers=6, heads=2, vocabulary=100)
    trace = tl.trace(model, torch.randint(0, 100, (1, 32)))
    before = storages(trace)
    fork = trace.fork()
    assert storages(fork) == before
    fork.do(tl.module("h.5.mlp"), tl.zero())
    changed = [op for op in fork.ops if op.step >= trace.ops[fork[fork.edits[0].labels[0]].step].step]
    wanted = sum(op.records[0].kept.nbytes for op in changed if op.kind == "call")
    extra = sum(size for key, size in storages(fork).items() if key not in before)
    assert extra <= wanted
    assert extra < 0.1 * sum(before.values())


def test_a_parent_may_be_dropped():
    trace = tl.trace(lambda x: torch.tanh(x * 2), torch.ones(1000))
    changed = weakref.ref(trace["tanh_1_2"].ops[0].records[0].kept.untyped_storage())
    fork = trace.fork().do(tl.func("mul"), tl.zero())
    changes(fork)
    gone = weakref.ref(trace)
    del trace
    gc.collect()
    assert gone() is None
    assert changed() is None
    assert fork.parent is None
    assert "The clean run is gone" in changes(fork).unclear
    assert fork.output.abs().max() == 0
    fork.do(tl.func("mul"), tl.add(1))
    assert torch.equal(fork.output, torch.tanh(torch.ones(1000)))


# -- files -------------------------------------------------------------------------------------


def test_the_record_survives_saving(trace, tmp_path):
    fork = trace.fork("ablate").do(tl.module("stages.0"), tl.scale(0.5))
    fork.save(tmp_path / "fork.tlens")
    loaded = tl.load(tmp_path / "fork.tlens")
    assert [edit.as_dict() for edit in loaded.edits] == [edit.as_dict() for edit in fork.edits]
    hit = fork.edits[0].labels[0]
    assert loaded[hit].edit.action == "scale(0.5)"
    assert torch.equal(loaded[hit].out, fork[hit].out)
    assert loaded.parent is None
    assert "The clean run is gone" in changes(loaded).unclear
    assert tl.diff(fork, loaded).changed == []


def test_a_loaded_trace_is_edited_like_the_one_that_was_saved(trace, tmp_path):
    trace.save(tmp_path / "trace.tlens")
    loaded = tl.load(tmp_path / "trace.tlens")
    for site in (tl.module("stages.0"), tl.label("x")):
        ours = trace.fork().do(site, tl.scale(0.5))
        theirs = loaded.fork().do(site, tl.scale(0.5))
        assert torch.equal(ours["output_1"].out, theirs["output_1"].out)
