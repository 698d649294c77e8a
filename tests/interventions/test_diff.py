"""``tl.diff``, and the view of what edits did, drawn from real forks."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.demo.models import build_gpt, build_resnet, build_rnn_loop
from torchlens.drawing.themes import THEMES

ROLES = THEMES["torchlens"].roles


@pytest.fixture
def gpt():
    torch.manual_seed(3)
    return build_gpt(width=16, layers=3, heads=2, vocabulary=20)


IDS = torch.tensor([[1, 2, 3, 4]])


def by_hand(first, second):
    """Largest change per call, op by op in order, with plain arithmetic."""
    found = {}
    for a, b in zip(first.ops, second.ops):
        pairs = zip(*(op.out if isinstance(op.out, tuple) else (op.out,) for op in (a, b)))
        change = max(float((x.double() - y.double()).abs().max()) for x, y in pairs)
        if change:
            found[b.label] = change
    return found


def test_other_weights(gpt):
    other = copy.deepcopy(gpt)
    with torch.no_grad():
        other.h[1].mlp.fc.weight.mul_(1.5)
    first, second = tl.trace(gpt, IDS), tl.trace(other, IDS, name="other")
    diff = tl.diff(first, second)
    assert diff.same_structure
    assert {row.op.label: row.change for row in diff.changed} == by_hand(first, second)
    assert diff.first_changed.op.module.address == "h.1.mlp.fc"
    assert len(diff) == len(diff.changed)
    lines = str(diff).splitlines()
    assert lines[0] == f"GPT → other: {len(diff)} ops differ, {len(second.ops) - len(diff)} are equal"
    assert lines[1].split()[0] == diff.first_changed.op.label
    assert len(lines) == 1 + len(diff)
    assert diff.table(limit=1).splitlines()[-1] == f"… {len(diff) - 1} more"


def test_equal_traces(gpt):
    diff = tl.diff(tl.trace(gpt, IDS), tl.trace(gpt, IDS))
    assert (len(diff), diff.first_changed, diff.unknown) == (0, None, [])


def test_other_inputs_and_other_lengths(gpt):
    first = tl.trace(gpt, IDS)
    assert len(tl.diff(first, tl.trace(gpt, IDS + 1))) > 20
    longer = tl.diff(first, tl.trace(gpt, torch.tensor([[1, 2, 3, 4, 5]])))
    assert longer.same_structure
    assert not longer.changed
    assert all("became" in row.reason for row in longer.unknown)
    assert "shape (1, 4) became (1, 5)" in str(longer)


def test_a_fork_against_its_parent(gpt):
    trace = tl.trace(gpt, IDS)
    fork = trace.fork().do(tl.module("h.1"), tl.scale(0.9))
    diff = tl.diff(trace, fork)
    assert {row.op.label: row.change for row in diff.changed} == by_hand(trace, fork)
    assert diff.first_changed.op.label == fork.edits[0].labels[0]


def test_another_structure_is_reported():
    class Net(nn.Module):
        def __init__(self, *, gated):
            super().__init__()
            self.a, self.b, self.gated = nn.Linear(3, 3), nn.Linear(3, 3), gated

        def forward(self, x):
            y = torch.relu(self.a(x))
            return self.b(torch.sigmoid(y) * y if self.gated else y)

    plain, gated = Net(gated=False), Net(gated=True)
    gated.load_state_dict(plain.state_dict())
    diff = tl.diff(tl.trace(plain, torch.ones(1, 3)), tl.trace(gated, torch.ones(1, 3)))
    assert not diff.same_structure
    assert [op.func_name for op in diff.only_second] == ["sigmoid", "mul"]
    assert diff.only_first == []
    assert "only in the second: sigmoid" in str(diff)
    assert [row.op.func_name for row in diff.changed] == ["linear", "output"]
    back = tl.diff(diff.second, diff.first)
    assert [op.func_name for op in back.only_first] == ["sigmoid", "mul"]


def test_more_steps_of_a_loop():
    model, x = build_rnn_loop(width=4), torch.randn(1, 5, 4)
    diff = tl.diff(tl.trace(model, x[:, :3]), tl.trace(model, x))
    assert [row.op.pass_index for row in diff.rows if row.op.func_name == "tanh"] == [1, 2, 3]
    assert [op.pass_index for op in diff.only_second if op.func_name == "tanh"] == [4, 5]
    assert not [row for row in diff.changed if row.op.func_name == "tanh"]


def test_values_that_were_not_kept(gpt):
    diff = tl.diff(tl.trace(gpt, IDS, save=tl.func("gelu")), tl.trace(gpt, IDS + 1))
    kept = [row.op.func_name for row in diff.rows if row.change is not None and row.op.kind == "call"]
    assert set(kept) == {"gelu"}
    assert {row.reason for row in diff.unknown} == {"its value was not kept in both"}


def test_what_is_no_trace():
    with pytest.raises(tl.InvalidArgumentError) as caught:
        tl.diff(tl.trace(torch.relu, torch.ones(1)), torch.ones(1))
    assert caught.value.code == "diff_second_invalid"


# -- pictures ----------------------------------------------------------------------------------


def strokes(drawing):
    return {node.id: node.stroke for node in drawing.nodes}


def test_the_view_of_a_fork(tmp_path):
    model = build_resnet(width=4, classes=5, layers=(1, 1))
    trace = tl.trace(model, torch.randn(1, 3, 16, 16))
    fork = trace.fork("ablated").do(tl.module("stages.1"), tl.scale(0.5))
    drawing = fork.draw(tmp_path / "f.svg", view="interventions")
    looks = strokes(drawing)
    hit = fork.edits[0].labels[0]
    assert looks[hit] == ROLES["edited"].stroke
    changed = {row.op.label for row in tl.diff(trace, fork).changed} - {hit}
    assert {label for label, stroke in looks.items() if stroke == ROLES["changed"].stroke} == changed
    assert len(changed) > 3
    assert len(drawing.header) <= 4
    census = (tmp_path / "f.svg.census.txt").read_text()
    assert f"edit 1: scale(0.5) at module('stages.1') (replay)\n  {hit}" in census
    assert f"  {hit}: solid, recorded" in census
    for row in tl.diff(trace, fork).changed:
        assert row.op.label == hit or f"  {row.op.label}: {row.change:.6g}" in census
    assert "values kept:" in census


def test_the_view_after_a_rerun_on_other_inputs():
    model = build_resnet(width=4, classes=5, layers=(1,))
    trace = tl.trace(model, torch.randn(1, 3, 16, 16))
    fork = trace.fork().do(tl.module("stages.0"), tl.zero()).rerun(model, torch.randn(1, 3, 16, 16))
    drawing = fork.draw(view="interventions")
    assert ROLES["edited"].stroke in strokes(drawing).values()
    assert ROLES["changed"].stroke not in strokes(drawing).values()
    assert "other inputs" in " ".join(drawing.caption)


def test_an_edited_input_is_no_other_input():
    trace = tl.trace(lambda x: torch.tanh(x) + 1, torch.ones(2))
    drawing = trace.fork().do(tl.label("x"), tl.zero()).draw(view="interventions")
    assert strokes(drawing)["input_1"] == ROLES["edited"].stroke
    assert strokes(drawing)["tanh_1_1"] == ROLES["changed"].stroke


def test_a_diff_draws_the_same_marks(gpt):
    first, second = tl.trace(gpt, IDS), tl.trace(gpt, IDS + 1)
    diff = tl.diff(first, second)
    drawing = diff.draw()
    marked = {label for label, stroke in strokes(drawing).items() if stroke == ROLES["changed"].stroke}
    assert marked == {row.op.label for row in diff.changed}
    assert any("differ from the other trace" in line for line in drawing.caption)
    assert second.parent is None
    assert second.edits == []
