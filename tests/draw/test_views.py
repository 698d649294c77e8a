"""The nine views: settings, refusals, and what each says of itself."""

from __future__ import annotations

import re
import warnings

import nets
import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.capture.recording import EditRecord
from torchlens.drawing.settings import VIEWS
from torchlens.drawing.themes import THEMES
from torchlens.drawing.views import SETTINGS, TABLE

ROLES = THEMES["torchlens"].roles


def caption(drawing):
    return "\n".join(drawing.caption)


@pytest.fixture(scope="module")
def edited():
    """A run whose product came out as zero, recorded as an edit, and the clean run it came from."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(3, 3)
            self.b = nn.Linear(3, 2)
            self.gain = 1.0

        def forward(self, x):
            return self.b(torch.relu(self.a(x) + 5) * self.gain)

    class Fork(tl.Trace):
        clean = None

        @property
        def parent(self):
            return self.clean

    torch.manual_seed(0)
    net = Net().eval()
    first = tl.trace(net, torch.ones(1, 3))
    net.gain = 0.0
    fork = Fork(tl.trace(net, torch.ones(1, 3)).recording)
    fork.clean = first
    fork.recording.edits.append(EditRecord("func('mul')", "scale(0)", "replay", ("mul_1_4",)))
    return fork


def subject(name, request):
    """A trace that holds what a view is about."""
    if name in ("sequence",):
        return request.getfixturevalue("loop")
    if name == "interventions":
        return request.getfixturevalue("edited")
    return request.getfixturevalue("stack")


@pytest.mark.parametrize("theme", list(THEMES))
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_in_every_theme(view, theme, request):
    drawing = subject(view, request).draw(view=view, theme=theme)
    assert drawing.scene.theme == theme
    assert drawing.svg
    assert all(len(line) <= 100 for line in drawing.caption)
    words = re.findall(r"[a-z]+", caption(drawing).lower())
    named = {"overview", "debug", "transformer", "interventions"} & set(words)
    assert not named


@pytest.mark.parametrize("view", VIEWS)
def test_every_keyword_composes_with_every_view(view, request):
    trace = subject(view, request)
    for given in (
        {"show_edge_shapes": True},
        {"direction": "bottomup"},
        {"color_by": "bytes", "scale": "log"},
        {"color_by": None},
        {"size_by": "params"},
        {"fold_repeats": True},
        {"depth": 0},
        {"show_orphans": True, "show_buffers": "always"},
        {"node_style": "profiling", "show_legend": False},
        {"stack_by": lambda part: part.type},
        {"node_spec_fn": lambda node, spec: spec.with_row("here")},
    ):
        drawing = trace.draw(view=view, **given)
        assert drawing.nodes
        if "node_spec_fn" in given:
            assert all(node.rows[-1].text == "here" for node in drawing.nodes)
        if "direction" in given:
            assert drawing.scene.direction == "bottomup"


def test_the_table_of_views():
    assert tuple(TABLE) == VIEWS
    assert all(view.question.endswith("?") for view in TABLE.values())
    assert dict(SETTINGS["speed"]) == {
        "node_style": "profiling",
        "show_legend": True,
        "color_by": "time",
        "scale": "rank",
    }
    assert SETTINGS["memory"]["color_by"] == "bytes"
    assert SETTINGS["memory"]["show_saved_for_backward"] is True
    assert SETTINGS["compute"]["color_by"] == "flops"


# -- refusals ----------------------------------------------------------------------------------


def test_speed_refuses_without_times(mlp, monkeypatch, tmp_path):
    monkeypatch.setattr(tl.Op, "func_duration", property(lambda op: None))
    with pytest.raises(tl.InvalidArgumentError) as caught:
        mlp.draw(tmp_path / "a", view="speed")
    assert caught.value.code == "view_evidence_missing"
    assert list(tmp_path.iterdir()) == []


def test_memory_and_dims_refuse_a_trace_without_ops(tmp_path):
    trace = tl.trace(lambda x: x, torch.ones(2))
    for view in ("memory", "dims", "compute", "speed"):
        with pytest.raises(tl.InvalidArgumentError) as caught:
            trace.draw(tmp_path / "a", view=view)
        assert caught.value.code == "view_evidence_missing"
        assert caught.value.remedy
    assert trace.draw(view="overview").nodes
    assert trace.draw(view="debug").nodes
    assert list(tmp_path.iterdir()) == []


def test_compute_refuses_without_flops():
    trace = tl.trace(lambda x: x.view(2, 2), torch.ones(4))
    with pytest.raises(tl.InvalidArgumentError) as caught:
        trace.draw(view="compute")
    assert caught.value.code == "view_evidence_missing"


@pytest.mark.parametrize("view", ["sequence", "transformer"])
def test_absent_subjects_point_to_the_neutral_picture(mlp, view):
    with pytest.raises(tl.InvalidArgumentError) as caught:
        mlp.draw(view=view)
    assert caught.value.code == "view_subject_absent"
    assert 'view="overview"' in caught.value.remedy
    assert "Leave view out" in caught.value.remedy


def test_interventions_refuses_without_edits(mlp):
    with pytest.raises(tl.InvalidArgumentError) as caught:
        mlp.draw(view="interventions")
    assert caught.value.code == "view_evidence_missing"


# -- speed, memory, compute --------------------------------------------------------------------


def test_speed_says_what_its_colours_mean(stack):
    said = caption(stack.draw(view="speed")).replace("\n", " ")
    assert f"encoded {stack.totals.ops} of {stack.totals.ops} ops" in said
    assert "rank order, not proportion" in said
    assert "compare ops with each other, not with production latency" in said
    assert "one instrumented run, no warm-up" in said


def test_runs_and_warm_ups_are_told():
    trace = tl.trace(nn.Linear(2, 2), torch.ones(1, 2), repeats=3, warmup=2)
    assert "median of 3 instrumented runs after 2 warm-ups" in caption(trace.draw(view="speed")).replace(
        "\n", " "
    )


@pytest.mark.parametrize(
    ("view", "field"), [("memory", "bytes"), ("compute", "flops"), ("speed", "func_duration")]
)
def test_the_five_largest_with_their_share(stack, view, field):
    values = {op: float(getattr(op, field) or 0) for op in stack.ops if op.kind == "call"}
    best = sorted(values.items(), key=lambda item: -item[1])[:5]
    for given in ({}, {"fold_repeats": True}, {"depth": 0}, {"module": "blocks.2"}):
        said = caption(stack.draw(view=view, **given)).replace("\n", " ")
        line = said[said.index("Largest: ") :]
        shares = [int(share) for share in re.findall(r"\((\d+)%\)", line)][:5]
        assert shares == [round(100 * value / sum(values.values())) for _, value in best]


def test_memory_counts_aliases():
    trace = tl.trace(lambda x: (x * 2).view(4).view(2, 2), torch.ones(2, 2))
    assert "2 ops of 3 return a view of their input" in caption(trace.draw(view="memory"))


def test_unknown_flops_are_uncoloured_and_counted():
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    trace = tl.trace(lambda x: torch.linalg.eigh(x @ x)[0] + 1, torch.eye(3))
    unknown = [op for op in trace.ops if op.kind == "call" and op.flops is None]
    assert unknown
    drawing = trace.draw(view="compute")
    assert f"encoded {3 - len(unknown)} of 3 ops" in caption(drawing)
    node = next(node for node in drawing.nodes if node.id == unknown[0].label)
    assert node.fill == THEMES["torchlens"].node_fill


# -- overview ----------------------------------------------------------------------------------


def test_overview_is_unrolled_with_one_pass_and_rolled_with_several(stack, loop):
    assert any(
        node.rows[0].text == "+2 more Block (blocks.1–blocks.2)" for node in stack.draw(view="overview").nodes
    )
    assert any("(x4)" in node.rows[0].text for node in loop.draw(view="overview").nodes)
    assert stack.draw(view="overview").scene.wrap


# -- debug -------------------------------------------------------------------------------------


def test_debug_marks_nonfinite_outputs_by_motif_and_text():
    trace = tl.trace(nets.Broken(), torch.ones(2, 2))
    drawing = trace.draw(view="debug")
    found = {node.id: (node.motif, [row.text for row in node.rows]) for node in drawing.nodes}
    log = next(op.label for op in trace.ops if op.type == "log")
    div = next(op.label for op in trace.ops if op.type == "div")
    assert found[log][0] == "diagonal"
    assert "NaN" in found[log][1]
    assert found[div][0] == "dots"
    assert "+Inf" in found[div][1]
    assert found["input_1"][0] is None
    said = caption(drawing)
    assert f"First: {log}" in said
    assert "2 NaN, 2 +Inf" in said
    assert {entry.text for entry in drawing.scene.legend.entries} >= {"NaN", "+Inf"}


def test_debug_without_values_warns_and_marks_nothing():
    trace = tl.trace(nets.Broken(), torch.ones(2, 2), save=False)
    with pytest.warns(tl.TorchLensWarning) as caught:
        drawing = trace.draw(view="debug")
    assert caught[0].message.code == "view_nonfinite_not_checked"
    assert "no output was checked" in caption(drawing)
    assert {node.motif for node in drawing.nodes} == {None}
    assert "all finite" not in caption(drawing)


def test_debug_marks_what_was_not_checked():
    trace = tl.trace(nets.Broken(), torch.ones(2, 2), save=lambda op: op.func_name != "log")
    assert trace["log_1_4"].ops[0].nonfinite is None
    drawing = trace.draw(view="debug")
    node = next(node for node in drawing.nodes if node.rows[0].text == "log")
    assert node.dashed
    assert "not checked" in [row.text for row in node.rows]
    assert re.search(r"Checked \d+ of \d+ outputs", caption(drawing))


def test_debug_names_the_usual_kind_once_and_labels_exceptions():
    trace = tl.trace(lambda x: (x + 1, x.argmax(-1)), torch.ones(2, 2))
    drawing = trace.draw(view="debug")
    assert "Unless labelled otherwise, tensors are float32 on cpu." in caption(drawing)
    labelled = [n.id for n in drawing.nodes if "int64" in [row.text for row in n.rows]]
    assert labelled == ["argmax_1_2", "output_2"]
    assert not any("float32" in row.text for node in drawing.nodes for row in node.rows)


def test_debug_shows_everything(residual):
    drawing = residual.draw(view="debug")
    assert len(drawing.nodes) == len(residual.ops)


# -- dims, sequence ----------------------------------------------------------------------------


def test_dims_draws_every_op_with_area_by_elements(stack):
    drawing = stack.draw(view="dims")
    assert len(drawing.nodes) == len(stack.ops)
    areas = {node.id: node.size[0] * node.size[1] for node in drawing.nodes}
    most = max(op.shape[0] * op.shape[1] * op.shape[2] for op in stack.ops if op.shape and len(op.shape) == 3)
    assert max(areas.values()) == pytest.approx(4 * 100 * 40)
    fc = next(op for op in stack.ops if op.label == "linear_1_3")
    assert areas[fc.label] == pytest.approx(4 * 100 * 40 * (2 * 5 * 24) / most)
    assert "area shows element count, not shape" in caption(drawing)


def test_sequence_colours_by_pass_and_stacks(loop):
    drawing = loop.draw(view="sequence")
    ramp = THEMES["torchlens"].ramp
    fills = {node.id: node.fill for node in drawing.nodes}
    assert fills["tanh_1_5:1"] == ramp[0]
    assert fills["tanh_1_5:4"] == ramp[-1]
    assert fills["linear_3_6"] == THEMES["torchlens"].node_fill
    assert {n.column for n in drawing.nodes if n.id.endswith(":2")} == {1}
    assert "side by side ran in the same pass, not in parallel" in caption(drawing)


def test_sequence_drops_stacking_where_passes_interleave():
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.b = nn.Linear(2, 2)

        def forward(self, x):
            for _ in range(2):
                x = self.a(x)
            for _ in range(3):
                x = self.b(x)
            return x

    trace = tl.trace(Two(), torch.ones(1, 2))
    with pytest.warns(tl.TorchLensWarning) as caught:
        drawing = trace.draw(view="sequence")
    assert caught[0].message.code == "view_secondary_degraded"
    assert {node.column for node in drawing.nodes} == {None}
    assert "Passes do not stand side by side" in caption(drawing)
    assert "ran in the same pass" not in caption(drawing)


def test_sequence_rolled_by_keyword_drops_stacking_with_a_warning(loop):
    with pytest.warns(tl.TorchLensWarning, match="rolled"):
        drawing = loop.draw(view="sequence", rolled=True)
    assert "all passes in one node" in caption(drawing)


# -- interventions -----------------------------------------------------------------------------


def test_edited_and_changed_ops_are_outlined(edited):
    drawing = edited.draw(view="interventions")
    nodes = {node.id: node for node in drawing.nodes}
    assert nodes["mul_1_4"].stroke == ROLES["edited"].stroke
    assert not nodes["mul_1_4"].dashed
    assert nodes["linear_2_5"].stroke == ROLES["changed"].stroke
    change = (edited["linear_2_5"].out - edited.parent["linear_2_5"].out).abs().max()
    assert f"changed by up to {float(change):.3g}" in [row.text for row in nodes["linear_2_5"].rows]
    assert nodes["linear_1_1"].stroke == ROLES["trainable"].stroke
    assert "Edited: 1 op by scale(0) at func('mul')." in caption(drawing)
    assert "Changed: 2 of 6 other values differ" in caption(drawing)


def test_without_the_clean_run_only_edits_are_marked(edited, monkeypatch):
    monkeypatch.setattr(type(edited), "clean", None)
    monkeypatch.delattr(edited, "clean")
    drawing = edited.draw(view="interventions")
    assert ROLES["changed"].stroke not in {node.stroke for node in drawing.nodes}
    assert "The clean run is gone" in caption(drawing)


def test_another_input_compares_nothing(edited, monkeypatch):
    other = tl.trace(nets.Loop(), (torch.ones(4, 2, 3), torch.zeros(2, 5)))
    monkeypatch.setattr(edited, "clean", other)
    assert "other inputs" in caption(edited.draw(view="interventions"))


def test_inferred_sites_are_dashed(edited, monkeypatch):
    inferred = EditRecord("func('mul')", "zero()", "rerun", ("mul_1_4",), True)
    monkeypatch.setattr(edited.recording, "edits", [inferred])
    drawing = edited.draw(view="interventions")
    assert next(node for node in drawing.nodes if node.id == "mul_1_4").dashed
    assert "inferred" in caption(drawing)


def test_a_written_figure_has_its_census_beside(edited, tmp_path):
    drawing = edited.draw(tmp_path / "a.svg", view="interventions")
    text = (tmp_path / "a.svg.census.txt").read_text()
    assert "scale(0) at func('mul') (replay)" in text
    assert "  mul_1_4" in text
    assert "linear_2_5" in text
    assert "values kept" in text
    assert drawing.path == tmp_path / "a.svg"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.svg", "a.svg.census.txt"]


def test_plain_drawings_warn_of_nothing(stack, loop, residual):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for trace in (stack, loop, residual):
            trace.draw()
