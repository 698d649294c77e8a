"""Nodes and edges say what people say."""

from __future__ import annotations

import nets
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import torchlens as tl
from torchlens.drawing.themes import THEMES

ROLES = THEMES["torchlens"].roles


def rows(drawing, title):
    node = next(node for node in drawing.nodes if node.rows[0].text == title)
    return [row.text for row in node.rows[1:]]


def node_of(drawing, start):
    return next(node for node in drawing.nodes if node.rows[0].text.startswith(start))


def test_leaf_modules_name_their_op_with_shape_params_and_arguments(residual):
    drawing = residual.draw()
    assert rows(drawing, "conv2d · conv") == ["(2, 4, 6, 6)", "weight (4, 3, 3, 3) · 108 params", "padding=1"]
    assert rows(drawing, "batch_norm · bn") == ["(2, 4, 6, 6)", "weight (4), bias (4) · 8 params"]


CALLS = [
    (lambda x: x * 0.125, "mul 0.125"),
    (lambda x: 1 - x, "1 - x"),
    (lambda x: x.softmax(dim=-1), "softmax dim=-1"),
    (lambda x: torch.softmax(x, 1), "softmax dim=1"),
    (lambda x: x.view(2, -1), "view(2, -1)"),
    (lambda x: x.reshape((2, 12)), "reshape(2, 12)"),
    (lambda x: x.transpose(0, 1), "transpose(0, 1)"),
    (lambda x: x.permute(2, 0, 1), "permute(2, 0, 1)"),
    (lambda x: x[:, 1:3], "getitem[:, 1:3]"),
    (lambda x: x[..., None], "getitem[..., None]"),
    (lambda x: x**2, "pow 2"),
    (lambda x: x.sum(dim=1, keepdim=True), "sum dim=1 keepdim=True"),
    (lambda x: torch.clamp(x, max=0.5), "clamp max=0.5"),
    (lambda x: x.to(torch.float64), "to float64"),
    (lambda x: F.gelu(x, approximate="tanh"), "gelu approximate=tanh"),
    (lambda x: F.relu(x, inplace=False), "relu"),
    (lambda x: F.max_pool2d(x, 2), "max_pool2d kernel_size=2"),
]


@pytest.mark.parametrize(("function", "title"), CALLS, ids=[title for _, title in CALLS])
def test_scalars_stand_in_the_title(function, title):
    drawing = tl.trace(function, torch.ones(2, 3, 4)).draw()
    names = [node.rows[0].text for node in drawing.nodes if node.fill == "#FFFFFF"]
    assert names == [title]


def test_redundant_arguments_only_when_asked():
    trace = tl.trace(nn.MaxPool2d(2), torch.ones(1, 1, 4, 4))
    plain, full = trace.draw(), trace.draw(show_redundant_args=True)
    assert not any("ceil_mode" in row.text for node in plain.nodes for row in node.rows)
    assert any("ceil_mode=False" in row.text for node in full.nodes for row in node.rows)


def test_several_outputs_are_listed():
    drawing = tl.trace(lambda x: x.chunk(2)[0], torch.ones(4, 3)).draw()
    assert rows(drawing, "chunk(2)") == ["(2, 3), (2, 3)"]


def test_shapes_can_be_left_out(mlp):
    assert not any(row.kind == "shape" for node in mlp.draw(show_shapes=False).nodes for row in node.rows)


def test_fills_follow_the_roles():
    drawing = tl.trace(nets.Frozen(), torch.ones(1, 4)).draw()
    fills = {node.rows[0].text: node.fill for node in drawing.nodes}
    assert fills == {
        "input · x": "#98FB98",
        "linear · free": "#D9D9D9",
        "linear · fixed": "#B0B0B0",
        "linear · partly": ROLES["mixed"].fill,
        "output": "#FF9999",
    }


def test_everything_else_is_white(residual):
    drawing = residual.draw()
    fills = {node.rows[0].text: node.fill for node in drawing.nodes}
    assert {fills[name] for name in ("relu", "mul 0.5", "sub", "add", "cat dim=1")} == {"#FFFFFF"}


def test_branch_tests_are_yellow_and_say_their_outcome():
    trace = tl.trace(nets.Branching(), torch.ones(1, 4))
    assert trace.branches
    node = node_of(trace.draw(), "gt")
    assert node.fill == "#F7D460"
    assert "IF: FALSE" in [row.text for row in node.rows]


def test_argument_slots_only_where_order_matters(residual):
    drawing = residual.draw()
    names = {node.id: node.rows[0].text for node in drawing.nodes}
    heads = {(names[e.source], names[e.target]): e.head for e in drawing.edges}
    assert heads["mul 0.5", "sub"] == "0"
    assert heads["batch_norm · bn", "sub"] == "1"
    assert heads["sub", "cat dim=1"] == "0"
    assert heads["add", "cat dim=1"] == "1"
    assert heads["batch_norm · bn", "add"] == ""
    assert heads["conv2d · conv", "batch_norm · bn"] == ""


def test_named_slots():
    drawing = tl.trace(
        lambda m, a, b: torch.where(m > 0, a, b), tuple(torch.ones(2) for _ in range(3))
    ).draw()
    heads = sorted(e.head for e in drawing.edges if e.head)
    assert len(set(heads)) == 3
    assert heads[0] == "condition"


def test_edge_shapes(mlp):
    labels = [edge.label for edge in mlp.draw(show_edge_shapes=True).edges]
    assert labels == ["(2, 8)", "(2, 16)", "(2, 16)", "(2, 4)"]
    assert not any(edge.label for edge in mlp.draw().edges)


def test_statistics_are_hidden_and_data_buffers_shown(residual):
    def buffers(**given):
        return sorted(
            n.rows[0].text for n in residual.draw(**given).nodes if n.rows[0].text.startswith("buffer")
        )

    assert buffers() == ["buffer · shift"]
    assert buffers(show_buffers="never") == []
    assert buffers(show_buffers="always") == [
        "buffer · bn.running_mean",
        "buffer · bn.running_var",
        "buffer · shift",
    ]


def test_what_is_left_out_is_counted_with_the_keyword_that_shows_it(residual):
    caption = " ".join(residual.draw().caption)
    assert "2 ops joined to no input or output (show_orphans=True draws them)" in caption
    assert '2 buffers (show_buffers="always" draws them)' in caption
    assert "Not drawn" not in " ".join(residual.draw(show_orphans=True, show_buffers="always").caption)


def test_orphans_stand_in_a_dashed_group(residual):
    drawing = residual.draw(show_orphans=True)
    group = next(box for box in drawing.boxes if box.dashed)
    assert [n.rows[0].text for n in drawing.nodes if n.scope == group.id] == ["zeros(3)", "sum"]
    assert not any(box.dashed for box in residual.draw().boxes)


def test_what_no_input_reaches_is_dashed():
    drawing = tl.trace(lambda x: x + torch.arange(3) * 2, torch.ones(3)).draw()
    dashed = [node.rows[0].text for node in drawing.nodes if node.dashed]
    assert dashed == ["arange(3)", "mul 2"]
    assert sorted(edge.dashed for edge in drawing.edges) == [False, False, True, True]


def test_profiling_rows(mlp):
    found = rows(mlp.draw(node_style="profiling"), "relu · 1")
    assert any("128 B" in row and " s" not in row.replace("µs", "").replace("ms", "") for row in found)
    assert any(row.endswith(tuple("0123456789")) and ".py:" in row for row in found)


def test_saved_for_backward_rows(mlp):
    found = rows(mlp.draw(show_saved_for_backward=True), "relu · 1")
    assert f"saved for backward {mlp['relu_1_2'].saved_for_backward}" in found


def test_a_partial_trace_draws_up_to_the_op_that_failed():
    with pytest.raises(RuntimeError) as caught:
        tl.trace(nets.Failing(), torch.ones(1, 4))
    drawing = caught.value.trace.draw()
    node = node_of(drawing, "matmul")
    assert node.stroke == ROLES["failed"].stroke
    assert "raised RuntimeError" in [row.text for row in node.rows]
    assert "The run stopped with RuntimeError" in drawing.caption[0]


def test_header_says_name_ops_params_and_inputs(stack):
    header = stack.draw().header
    assert header[0] == "Stack"
    assert header[1] == "44 ops · 1.93 k params (all trainable) · input ids (2, 5)"


def test_tooltips_point_into_the_code(residual):
    node = node_of(residual.draw(), "cat")
    assert "nets.py:" in node.tooltip
    assert node.id in node.tooltip
