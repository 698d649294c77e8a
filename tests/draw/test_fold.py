"""Rolling, folding, collapsing, focus: what is open and what closed ones say."""

from __future__ import annotations

import nets
import pytest
import torch
from torch import nn

import torchlens as tl


def titles(drawing):
    return [node.rows[0].text for node in drawing.nodes]


def boxes(drawing):
    return [box.title[0].text for box in drawing.boxes]


def test_boxes_are_module_calls_of_several_nodes(stack):
    assert boxes(stack.draw()) == [
        text
        for i in range(3)
        for text in (f"blocks.{i} · Block", f"blocks.{i}.attn · Attention", f"blocks.{i}.mlp · Sequential")
    ]


def test_a_module_called_three_times_is_three_boxes_and_one_when_rolled(cell_loop):
    assert boxes(cell_loop.draw()) == [f"cell:{i} · Cell" for i in (1, 2, 3)]
    assert boxes(cell_loop.draw(rolled=True)) == ["cell · Cell (x3)"]


def test_depth_closes_deeper_calls(stack):
    drawing = stack.draw(depth=1)
    assert boxes(drawing) == [f"blocks.{i} · Block" for i in range(3)]
    closed = next(node for node in drawing.nodes if node.rows[0].text == "blocks.0.attn · Attention")
    assert [row.text for row in closed.rows] == [
        "blocks.0.attn · Attention",
        "(2, 5, 8)",
        "8 ops · 288 params",
    ]
    assert boxes(stack.draw(depth=0)) == []
    assert any("nested deeper than 1" in line for line in drawing.caption)


def test_collapse_levels_from_nothing_to_everything(stack):
    assert len(stack.draw(collapse=0.0).nodes) == len(stack.draw().nodes)
    closed = stack.draw(collapse=1.0)
    assert boxes(closed) == []
    assert len(closed.nodes) == 1 + 1 + 3 + 1 + 1
    counts = [len(stack.draw(collapse=i / 10).nodes) for i in range(11)]
    assert counts == sorted(counts, reverse=True)


def test_equal_blocks_fold_into_the_first_and_one_node(stack):
    drawing = stack.draw(fold_repeats=True)
    folded = next(node for node in drawing.nodes if node.rows[0].text.startswith("+"))
    assert folded.rows[0].text == "+2 more Block (blocks.1–blocks.2)"
    assert folded.rows[1].text == "28 ops · 1.17 k params"
    assert boxes(drawing) == ["blocks.0 · Block", "blocks.0.attn · Attention", "blocks.0.mlp · Sequential"]
    assert len(drawing.nodes) == 1 + 1 + nets.OPS_PER_BLOCK + 1 + 1 + 1


def test_different_neighbours_do_not_fold():
    model = nn.Sequential(nets.Block(8), nets.Block(8), nets.CellLoop.Cell())
    model[2].w = nn.Linear(8, 8)
    drawing = tl.trace(model, torch.ones(1, 3, 8)).draw(fold_repeats=True)
    assert [t for t in titles(drawing) if t.startswith("+")] == ["+1 more Block (1)"]
    assert "2 · Cell" in boxes(drawing)


def test_blocks_wired_differently_inside_do_not_fold():
    class Twisted(nets.Attention):
        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            scores = (k @ q.transpose(-2, -1)) * 0.125
            return self.proj(scores.softmax(dim=-1) @ v)

    Twisted.__name__ = "Attention"
    model = nn.Sequential(nets.Attention(8), Twisted(8))
    drawing = tl.trace(model, torch.ones(1, 3, 8)).draw(fold_repeats=True)
    assert not any(title.startswith("+") for title in titles(drawing))


def test_folding_closing_and_rolling_combine(stack):
    drawing = stack.draw(fold_repeats=True, depth=0, rolled=True, color_by="flops")
    assert titles(drawing)[2:4] == ["blocks.0 · Block", "+2 more Block (blocks.1–blocks.2)"]


def test_module_draws_the_inside_with_dashed_neighbours(stack):
    drawing = stack.draw(module="blocks.1")
    assert boxes(drawing)[0] == "blocks.1 · Block"
    stubs = [node for node in drawing.nodes if node.scope == ""]
    assert [node.rows[0].text for node in stubs] == ["blocks.0 · Block", "blocks.2 · Block"]
    assert all(node.dashed for node in stubs)
    assert len(drawing.nodes) == nets.OPS_PER_BLOCK + 2
    assert any("blocks.1" in line and "4 other nodes are" in line for line in drawing.caption)
    assert len(stack.draw(module=stack["blocks.1"]).nodes) == len(drawing.nodes)


def test_module_of_one_op_is_that_node_and_its_neighbours(stack):
    assert titles(stack.draw(module="head")) == ["blocks.2 · Block", "linear · head", "output"]


def test_one_call_of_a_module_by_its_label(cell_loop):
    assert boxes(cell_loop.draw(module="cell:2")) == ["cell:2 · Cell"]
    assert boxes(cell_loop.draw(module="cell")) == ["cell:1 · Cell", "cell:2 · Cell", "cell:3 · Cell"]


def test_rolled_titles_and_passes_on_edges_only_where_they_differ(loop):
    drawing = loop.draw(rolled=True)
    assert titles(drawing) == [
        "input · x",
        "input · h",
        "getitem (x4)",
        "linear · a (x4)",
        "linear · b (x4)",
        "add (x4)",
        "tanh (x4)",
        "linear · out",
        "output",
    ]
    names = {node.id: node.rows[0].text for node in drawing.nodes}
    labels = {(names[e.source], names[e.target]): e.label for e in drawing.edges}
    assert labels["input · h", "linear · b (x4)"] == "pass 1"
    assert labels["tanh (x4)", "linear · b (x4)"] == "passes 2–4"
    assert labels["linear · a (x4)", "add (x4)"] == ""
    back = [(names[e.source], names[e.target]) for e in drawing.edges if e.back]
    assert back == [("tanh (x4)", "linear · b (x4)")]


def test_a_layer_that_feeds_itself_has_a_loop():
    def double(x):
        for _ in range(3):
            x = torch.tanh(x)
        return x

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Linear(2, 2)

        def forward(self, x):
            for _ in range(3):
                x = self.w(x)
            return x

    drawing = tl.trace(Net(), torch.ones(1, 2)).draw(rolled=True)
    loops = [edge for edge in drawing.edges if edge.source == edge.target]
    assert len(loops) == 1
    assert loops[0].back
    assert loops[0].label == "passes 2–3"


def test_order_is_of_execution_not_of_names():
    trace = tl.trace(nn.Sequential(*(nets.Block(8) for _ in range(12))), torch.ones(1, 3, 8))
    closed = [t for t in titles(trace.draw(depth=0)) if "Block" in t]
    assert closed == [f"{i} · Block" for i in range(12)]


@pytest.mark.parametrize("rolled", [False, True])
def test_hostile_names_are_drawn(rolled):
    model = nn.Module()
    model.add_module('we<ird: "näme"\n', nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    model.forward = lambda x: model._modules['we<ird: "näme"\n'](x)
    trace = tl.trace(model, torch.ones(1, 2))
    drawing = trace.draw(rolled=rolled)
    assert "<ird" not in drawing.svg
    assert any("linear" in title for title in titles(drawing))


def test_names_of_a_run_are_short_but_still_names():
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.h = nn.ModuleList(nets.Block(8) for _ in range(3))
            self.tail = nn.Sequential(nets.Block(8), nets.Block(8))

        def forward(self, x):
            for block in self.h:
                x = block(x)
            return self.tail(torch.relu(x))

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.core = Inner()

        def forward(self, x):
            return torch.tanh(self.core(x))

    drawing = tl.trace(Outer(), torch.ones(1, 3, 8)).draw(fold_repeats=True)
    folded = [title for title in titles(drawing) if title.startswith("+")]
    assert folded == ["+2 more Block (h.1–h.2)", "+1 more Block (core.tail.1)"]
