"""Everything is checked before any work, and a refusal leaves nothing behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.drawing.settings import KEYWORDS

WRONG = [
    ({"view": "sped"}, "draw_view_invalid", "speed"),
    ({"view": 3}, "draw_view_invalid", "overview"),
    ({"theme": "drak"}, "draw_theme_invalid", "dark"),
    ({"theme": None}, "draw_theme_invalid", "torchlens"),
    ({"file_format": "gif"}, "draw_file_format_invalid", "svg"),
    ({"rolled": "yes"}, "draw_rolled_invalid", "True or False"),
    ({"rolled": 1}, "draw_rolled_invalid", "True or False"),
    ({"module": "block.0"}, "draw_module_invalid", "blocks.0"),
    ({"module": 4}, "draw_module_invalid", "address"),
    ({"depth": -1}, "draw_depth_invalid", "0 or more"),
    ({"depth": 1.5}, "draw_depth_invalid", "whole number"),
    ({"depth": True}, "draw_depth_invalid", "whole number"),
    ({"collapse": "al"}, "draw_collapse_invalid", "auto"),
    ({"collapse": 2}, "draw_collapse_invalid", "0 to 1"),
    ({"collapse": None}, "draw_collapse_invalid", "0 to 1"),
    ({"fold_repeats": 2}, "draw_fold_repeats_invalid", "True or False"),
    ({"direction": "down"}, "draw_direction_invalid", "topdown"),
    ({"color_by": "flop"}, "draw_color_by_invalid", "flops"),
    ({"size_by": 7}, "draw_size_by_invalid", "dims"),
    ({"scale": "cubic", "color_by": "time"}, "draw_scale_invalid", "rank"),
    ({"stack_by": "time"}, "draw_stack_by_invalid", "pass"),
    ({"node_style": "profile"}, "draw_node_style_invalid", "profiling"),
    ({"node_spec_fn": 1}, "draw_node_spec_fn_invalid", "NodeSpec"),
    ({"show_shapes": 0}, "draw_show_shapes_invalid", "True or False"),
    ({"show_edge_shapes": None}, "draw_show_edge_shapes_invalid", "True or False"),
    ({"show_buffers": True}, "draw_show_buffers_invalid", "meaningful"),
    ({"show_redundant_args": "no"}, "draw_show_redundant_args_invalid", "True or False"),
    ({"show_orphans": "no"}, "draw_show_orphans_invalid", "True or False"),
    ({"show_legend": "no"}, "draw_show_legend_invalid", "True or False"),
    ({"show_saved_for_backward": "no"}, "draw_show_saved_for_backward_invalid", "True or False"),
    ({"long_edges": "tag"}, "draw_long_edges_invalid", "stub"),
    ({"wrap": "auto"}, "draw_wrap_invalid", "True or False"),
    ({"font_size": 0}, "draw_font_size_invalid", "4 to 72"),
    ({"font_size": "big"}, "draw_font_size_invalid", "4 to 72"),
    ({"dpi": 5}, "draw_dpi_invalid", "20 to 1200"),
    ({"colour_by": "time"}, "draw_keyword_unknown", "color_by"),
    ({"scale": "log"}, "draw_scale_without_channel", "color_by"),
    ({"stack_by": "pass", "rolled": True}, "draw_stack_by_rolled", "rolled=False"),
    ({"depth": 1, "collapse": 0.5}, "draw_depth_with_collapse", "one of the two"),
    ({"depth": 1, "collapse": "auto"}, "draw_depth_with_collapse", "one of the two"),
]


def test_every_keyword_has_a_wrong_value_here():
    assert {name for given, _, _ in WRONG for name in given} >= set(KEYWORDS)


@pytest.mark.parametrize(("given", "code", "said"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_settings_are_refused_and_nothing_is_written(stack, tmp_path, monkeypatch, given, code, said):
    def no_work(*args, **kwargs):
        raise AssertionError("the layout started")

    monkeypatch.setattr("torchlens.drawing.draw.lay_out", no_work)
    with pytest.raises(tl.InvalidArgumentError) as caught:
        stack.draw(tmp_path / "new" / "figure", **given)
    error = caught.value
    assert error.code == code
    assert error.argument in given
    assert said in str(error)
    assert error.remedy
    assert error.remedy in str(error)
    assert list(tmp_path.iterdir()) == []


def test_view_error_lists_all_nine(mlp):
    with pytest.raises(tl.InvalidArgumentError) as caught:
        mlp.draw(view="sequenc")
    names = "overview debug speed memory compute dims transformer sequence interventions".split()
    assert all(repr(name) in str(caught.value) for name in names)


def test_format_and_suffix_may_not_disagree(mlp, tmp_path):
    with pytest.raises(tl.InvalidArgumentError) as caught:
        mlp.draw(tmp_path / "a.png", file_format="svg")
    assert caught.value.code == "draw_format_suffix_disagree"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [3, b"", "", True, ["a.svg"]])
def test_what_is_no_path_is_refused(mlp, path):
    with pytest.raises(tl.InvalidArgumentError) as caught:
        mlp.draw(path)
    assert caught.value.code == "draw_path_invalid"


def test_a_folder_that_cannot_be_made_is_refused_before_work(mlp, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("here")
    monkeypatch.setattr("torchlens.drawing.draw.lay_out", lambda scene: pytest.fail("the layout started"))
    with pytest.raises(tl.InvalidArgumentError) as caught:
        mlp.draw(tmp_path / "file" / "deeper" / "a.svg")
    assert caught.value.code == "draw_path_unwritable"
    assert (tmp_path / "file").read_text() == "here"


def test_a_write_that_fails_leaves_no_half_file(mlp, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(tl.InvalidArgumentError, match="No space left"):
        mlp.draw(tmp_path / "a.svg")
    assert list(tmp_path.iterdir()) == []


def test_varying_shapes_cannot_be_sized_rolled():
    def growing(x):
        for _ in range(3):
            x = torch.cat([x, x])
        return x

    trace = tl.trace(growing, torch.ones(2))
    assert trace.is_recurrent
    with pytest.raises(tl.InvalidArgumentError) as caught:
        trace.draw(size_by="dims", rolled=True)
    assert caught.value.code == "draw_size_by_rolled"
    trace.draw(size_by="dims")


@pytest.mark.parametrize("name", ["color_by", "size_by", "node_spec_fn", "stack_by"])
def test_a_users_own_exception_comes_through_and_names_the_node(mlp, name):
    def broken(*args):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        mlp.draw(**{name: broken})
    notes = "\n".join(caught.value.__notes__)
    assert any(op.label in notes for op in mlp.ops)


@pytest.mark.parametrize("value", [3, "red", object()])
def test_node_spec_fn_has_to_return_a_spec(mlp, value):
    with pytest.raises(tl.InvalidArgumentError) as caught:
        mlp.draw(node_spec_fn=lambda node, spec: value)
    assert caught.value.code == "draw_node_spec_invalid"


def test_module_that_ran_nothing_is_refused():
    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = nn.Linear(2, 2)
            self.idle = nn.Linear(2, 2)

        def forward(self, x):
            return self.used(x)

    trace = tl.trace(Idle(), torch.ones(1, 2))
    with pytest.raises(tl.InvalidArgumentError) as caught:
        trace.draw(module="idle")
    assert caught.value.code == "draw_module_invalid"
