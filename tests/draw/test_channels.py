"""Colour and size follow the values, and say where they do not."""

from __future__ import annotations

import math
import statistics

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.drawing.channels import positions, step_of
from torchlens.drawing.themes import THEMES

THEME = THEMES["torchlens"]


def fills(drawing):
    return {node.id: node.fill for node in drawing.nodes}


def test_rank_is_dense_and_ties_are_equal():
    assert positions([5.0, 1.0, 5.0, 100.0], "rank") == [0.5, 0.0, 0.5, 1.0]


def test_scales():
    assert positions([0.0, 5.0, 10.0], "linear") == [0.0, 0.5, 1.0]
    assert positions([0.0, 25.0, 100.0], "sqrt") == [0.0, 0.5, 1.0]
    assert positions([1.0, 10.0, 100.0], "log") == pytest.approx([0.0, 0.5, 1.0])
    assert positions([0.0, 1.0, 100.0], "log") == pytest.approx([0.0, 0.0, 1.0])
    assert positions([-10.0, 0.0, 10.0], "linear") == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("scale", ["rank", "linear", "log", "sqrt"])
def test_larger_values_never_get_lighter_steps(stack, scale):
    drawing = stack.draw(color_by="bytes", scale=scale)
    step = {color: i for i, color in enumerate(THEME.ramp)}
    found = sorted((int(stack[n.id].bytes), step[n.fill]) for n in drawing.nodes if n.fill in step)
    assert len(found) == stack.totals.ops
    assert [s for _, s in found] == sorted(s for _, s in found)
    assert found[0][1] == 0
    assert found[-1][1] == len(THEME.ramp) - 1


def test_steps_span_the_ramp():
    assert [step_of(p, 4) for p in (0.0, 0.24, 0.25, 0.75, 0.99, 1.0)] == [0, 0, 1, 3, 3, 3]


def test_rank_colours_by_hand(mlp):
    drawing = mlp.draw(color_by="bytes")
    assert [mlp[name].bytes for name in ("linear_1_1", "relu_1_2", "linear_2_3")] == [128, 128, 32]
    found = fills(drawing)
    assert found["linear_1_1"] == found["relu_1_2"] == THEME.ramp[-1]
    assert found["linear_2_3"] == THEME.ramp[0]
    assert found["input_1"] == "#98FB98"


def test_legend_has_true_minimum_median_and_maximum(stack):
    drawing = stack.draw(color_by="bytes")
    values = [int(op.bytes) for op in stack.ops if op.kind == "call"]
    (ramp,) = drawing.scene.legend.ramps
    as_bytes = type(stack.ops[1].bytes)
    assert ramp.minimum == str(as_bytes(min(values)))
    assert ramp.median == str(as_bytes(statistics.median(values)))
    assert ramp.maximum == str(as_bytes(max(values)))
    assert stack.draw().scene.legend is None
    assert stack.draw(color_by="bytes", show_legend=False).scene.legend is None
    assert stack.draw(show_legend=True).scene.legend.entries


def test_all_equal_is_uncoloured_with_a_note():
    trace = tl.trace(nn.Sequential(nn.ReLU(), nn.Tanh()), torch.ones(3))
    drawing = trace.draw(color_by="bytes")
    assert fills(drawing)["relu_1_1"] == fills(drawing)["tanh_1_2"] == THEME.node_fill
    assert any("every op has the same output memory (12 B)" in line for line in drawing.caption)
    assert any("encoded 0 of 2 ops" in line for line in drawing.caption)
    assert drawing.scene.legend.ramps == ()


def test_missing_nonnumeric_and_nonfinite_values_are_uncoloured_and_counted(mlp):
    values = {"linear_1_1": 3.0, "relu_1_2": None, "linear_2_3": 7.0}
    drawing = mlp.draw(color_by=lambda op: values[op.label])
    assert fills(drawing)["relu_1_2"] == THEME.node_fill
    assert any("encoded 2 of 3 ops (1 without a value left uncoloured)" in line for line in drawing.caption)
    for odd in ("text", math.nan, math.inf, True, [1]):
        drawing = mlp.draw(color_by=lambda op, odd=odd: odd if op.type == "relu" else float(op.step))
        assert fills(drawing)["relu_1_2"] == THEME.node_fill
        assert any("1 with one that is no finite number" in line for line in drawing.caption)


def test_any_numeric_field_of_op(mlp):
    drawing = mlp.draw(color_by="step")
    assert [fills(drawing)[op.label] for op in mlp.ops[1:4]] == [THEME.ramp[0], THEME.ramp[4], THEME.ramp[-1]]


def test_rolled_colours_the_total_over_passes_and_says_so(loop):
    drawing = loop.draw(color_by="bytes", rolled=True)
    totals = {layer.label: int(layer.total_bytes) for layer in loop.layers if layer.kind == "call"}
    step = {color: i for i, color in enumerate(THEME.ramp)}
    order = sorted(totals, key=lambda name: totals[name])
    steps = [step[fills(drawing)[name]] for name in order]
    assert steps == sorted(steps)
    assert any("summed over passes" in line for line in drawing.caption)
    assert any(f"encoded {loop.totals.ops} of {loop.totals.ops} ops" in line for line in drawing.caption)
    assert not any("summed over passes" in line for line in loop.draw(color_by="bytes").caption)


def test_closed_boxes_are_neutral_and_not_encoded(stack):
    drawing = stack.draw(color_by="flops", depth=0)
    closed = [node for node in drawing.nodes if "Block" in node.rows[0].text]
    assert {node.fill for node in closed} == {THEME.roles["aggregate"].fill}
    assert any("encoded 2 of 44 ops" in line for line in drawing.caption)
    assert any("not encoded" in line for line in drawing.caption)
    assert any(entry.text == "aggregate, not encoded" for entry in drawing.scene.legend.entries)


def test_area_is_proportional_to_elements_and_at_most_four_plain_boxes():
    trace = tl.trace(nn.Sequential(nn.Linear(4, 64), nn.Linear(64, 16), nn.Linear(16, 1)), torch.ones(2, 4))
    drawing = trace.draw(size_by="dims")
    area = {node.id: node.size[0] * node.size[1] for node in drawing.nodes}
    assert area["linear_1_1"] == pytest.approx(4 * 100 * 40)
    assert area["linear_2_2"] / area["linear_1_1"] == pytest.approx(16 / 64)
    assert area["input_1"] / area["linear_1_1"] == pytest.approx(4 / 64)
    rects = {p.node.id: p.rect for p in drawing.placed.nodes}
    drawn = {name: rect.width * rect.height for name, rect in rects.items()}
    assert drawn["linear_2_2"] / drawn["linear_1_1"] == pytest.approx(16 / 64, rel=0.02)


def test_elements_are_per_batch_item():
    model = nn.Sequential(nn.Linear(4, 8), nn.Flatten(0))
    drawing = tl.trace(model, torch.ones(6, 4)).draw(size_by="dims", node_spec_fn=None)
    assert any("elements per batch item" in line for line in drawing.caption)
    single = tl.trace(nn.Linear(4, 8), torch.ones(4)).draw(size_by="dims")
    assert not any("per batch item" in line for line in single.caption)


def test_boxes_too_small_to_see_are_dots_and_counted():
    trace = tl.trace(lambda x: x.sum() + 1, torch.ones(300, 300))
    drawing = trace.draw(size_by="dims")
    assert any("drawn as dots" in line for line in drawing.caption)


def test_stack_by_puts_equal_values_in_one_column(loop):
    drawing = loop.draw(stack_by="pass")
    columns = {}
    for node in drawing.nodes:
        columns.setdefault(node.column, []).append(node.id)
    assert sorted(columns[None]) == ["input_1", "input_2", "linear_3_6", "output_1"]
    assert all(len(names) == 5 for column, names in columns.items() if column is not None)
    by_type = loop.draw(stack_by=lambda op: op.type == "add")
    assert len({n.column for n in by_type.nodes if n.id.startswith("add")}) == 1


def test_boxes_of_a_pass_carry_its_column(cell_loop):
    drawing = cell_loop.draw(stack_by="pass")
    assert [box.column for box in drawing.boxes] == [0, 1, 2]
    assert {node.column for node in drawing.nodes} == {None}
