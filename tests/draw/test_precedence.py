"""theme < view < keyword < mark < channel < view styling < node_spec_fn, one test a step."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from torchlens.drawing.settings import ORDER, read, resolve
from torchlens.drawing.themes import THEMES


@pytest.mark.parametrize(("weak", "strong"), list(itertools.pairwise(ORDER)))
def test_each_source_wins_over_the_one_before(weak, strong):
    layers = {strong: {"fill": "strong"}, weak: {"fill": "weak", "other": "weak"}}
    found = resolve(layers)
    assert found["fill"] == ("strong", strong)
    assert found["other"] == ("weak", weak)


def test_view_settings_win_over_theme_defaults():
    assert read({})["node_style"] == "default"
    chosen = read({"view": "speed"})
    assert chosen["node_style"] == "profiling"
    assert chosen.source("node_style") == "view"


def test_keywords_win_over_view_settings(stack):
    chosen = read({"view": "speed", "color_by": "bytes", "node_style": "default"})
    assert chosen["color_by"] == "bytes"
    assert chosen.source("color_by") == "keyword"
    assert chosen["show_legend"] is True
    assert read({"view": "speed", "color_by": None})["color_by"] is None


def test_marks_win_over_keywords_and_roles():
    import nets

    import torchlens as tl

    with pytest.raises(RuntimeError) as caught:
        tl.trace(nets.Failing(), nets.torch.ones(1, 4))
    drawing = caught.value.trace.draw(theme="paper")
    failed = next(node for node in drawing.nodes if node.rows[0].text == "matmul")
    assert failed.stroke == THEMES["paper"].roles["failed"].stroke


def test_the_channel_wins_over_roles_and_marks(mlp):
    plain, coloured = mlp.draw(), mlp.draw(color_by="bytes")
    node = {n.id: n for n in plain.nodes}["linear_1_1"]
    after = {n.id: n for n in coloured.nodes}["linear_1_1"]
    assert node.fill == THEMES["torchlens"].roles["trainable"].fill
    assert after.fill == THEMES["torchlens"].ramp[-1]
    assert after.ink == THEMES["torchlens"].ink_on(after.fill)


def test_node_spec_fn_has_the_last_word_on_every_node(mlp):
    seen = []

    def paint(node, spec):
        seen.append(node)
        if node.op.kind == "call":
            return replace(spec.with_row(f"step {node.op.step}"), fill="#102030", size=None)
        return None

    drawing = mlp.draw(view="speed", node_spec_fn=paint)
    assert [node.op for node in seen] == mlp.ops
    painted = [n for n in drawing.nodes if n.fill == "#102030"]
    assert len(painted) == 3
    assert painted[0].rows[-1].text == "step 1"
    assert painted[0].ink == THEMES["torchlens"].ink_on("#102030")


def test_node_spec_fn_sees_layers_in_a_rolled_drawing_and_calls_when_closed(loop, stack):
    seen = []
    loop.draw(rolled=True, node_spec_fn=lambda node, spec: seen.append(node))
    assert [node.layer for node in seen] == loop.layers
    assert all(node.op is None for node in seen)
    seen.clear()
    stack.draw(depth=0, node_spec_fn=lambda node, spec: seen.append(node))
    assert [node.call.label for node in seen if node.call] == ["blocks.0", "blocks.1", "blocks.2"]


def test_plain_strings_become_rows(mlp):
    drawing = mlp.draw(node_spec_fn=lambda node, spec: replace(spec, rows=("name", "more")))
    assert {tuple((r.text, r.kind) for r in n.rows) for n in drawing.nodes} == {
        (("name", "title"), ("more", "detail"))
    }
