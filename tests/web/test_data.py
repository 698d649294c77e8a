"""The data of the page: whole, small, and the same as the static pictures say."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

import torchlens as tl
from torchlens.drawing import settings
from torchlens.drawing.page.data import page_data
from torchlens.drawing.page.first import MOST as LAID_OUT
from torchlens.drawing.page.tree import MOST
from torchlens.drawing.settings import VIEWS

TRACES = ("gpt", "resnet", "rnn", "hostile")


@pytest.fixture(params=TRACES)
def trace(request):
    return request.getfixturevalue(request.param)


_known = {}


def data_of(trace, **keywords):
    key = (id(trace), *(f"{name}={value!r}" for name, value in keywords.items()))
    if key not in _known:
        _known[key] = trace, page_data(trace, settings.read(keywords))
    return _known[key][1]


def view_of(data, name):
    return next(view for view in data["views"] if view["name"] == name)


def rows_of(data, view, item):
    flat = data["rows"][data["columns"][view["rows"]][item]]
    return [data["strings"][text] for text in flat[1::2]]


def static(trace, view, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return trace.draw(view=view, **keywords)


# -- laws ----------------------------------------------------------------------------------------


def test_every_unit_stands_in_the_tree_once(trace):
    data = data_of(trace)
    for graph in data["graphs"]:
        units, parents = len(graph["units"]), graph["parents"]
        assert len(set(graph["units"])) == units
        assert all(parent == -1 or units <= parent < len(parents) for parent in parents)
        for item in range(len(parents)):
            way, up = set(), item
            while up >= 0:
                assert up not in way
                way.add(up)
                up = parents[up]
        children = [parents.count(item) for item in range(units, len(parents))]
        assert all(0 < count <= MOST for count in children)
        assert parents.count(-1) <= MOST


def test_wires_join_units(trace):
    for graph in data_of(trace)["graphs"]:
        units = range(len(graph["units"]))
        assert len(graph["sources"]) == len(graph["targets"]) == len(graph["counts"])
        assert all(end in units for end in [*graph["sources"], *graph["targets"]])


def test_columns_are_as_long_as_what_they_describe(trace):
    data = data_of(trace)
    for view in data["views"]:
        graph = data["graphs"][view["graph"]]
        for name in ("rows", "looks"):
            assert len(data["columns"][view[name]]) == len(graph["parents"])
        for name in ("heads", "labels"):
            assert len(data["columns"][view[name]]) == len(graph["sources"])
    facts = {len(column) for column in data["facts"].values()}
    assert len(facts) == 1
    assert all(unit < facts.copy().pop() for graph in data["graphs"] for unit in graph["units"])


def test_the_first_layout_holds_exactly_what_is_visible(trace):
    data = data_of(trace)
    for view in data["views"]:
        graph, first = data["graphs"][view["graph"]], view["first"]
        opened = {*view["open"], *view["focus"]}
        shown = {
            item
            for item, parent in enumerate(graph["parents"])
            if item not in opened and (parent == -1 or parent in opened)
        }
        nodes = first["nodes"][::5]
        assert len(nodes) == len(set(nodes)) <= LAID_OUT
        if not view["focus"]:
            assert {item for item in shown if _is_reached(graph["parents"], item, opened)} == set(nodes)
            assert set(first["boxes"][::7]) <= opened
        for source, target, *points in first["edges"]:
            assert source in nodes
            assert target in nodes
            assert len(points) % 6 == 2


def _is_reached(parents, item, opened):
    up = parents[item]
    return up == -1 or (up in opened and _is_reached(parents, up, opened))


def test_nodes_of_the_first_layout_do_not_overlap(trace):
    for view in data_of(trace)["views"]:
        flat = view["first"]["nodes"]
        rects = sorted((flat[k + 1], flat[k + 2], flat[k + 3], flat[k + 4]) for k in range(0, len(flat), 5))
        for k, (x, y, wide, high) in enumerate(rects):
            for left, top, across, down in rects[k + 1 :]:
                assert not (
                    left < x + wide - 1
                    and x < left + across - 1
                    and top < y + high - 1
                    and y < top + down - 1
                )


# -- the same as the static pictures -------------------------------------------------------------


@pytest.mark.parametrize("name", VIEWS)
def test_rows_are_those_of_the_static_picture(gpt, name):
    data = data_of(gpt)
    if name not in [view["name"] for view in data["views"]]:
        with pytest.raises(tl.InvalidArgumentError):
            gpt.draw(view=name)
        return
    view = view_of(data, name)
    drawing = static(gpt, name, fold_repeats=False, collapse="none")
    if view["focus"]:
        texts = [[row.text for row in node.rows] for node in drawing.nodes if not node.dashed]
    else:
        texts = [[row.text for row in node.rows] for node in drawing.nodes]
    units = range(len(data["graphs"][view["graph"]]["units"]))
    found = [rows_of(data, view, unit) for unit in units]
    if view["focus"]:
        assert all(text in found for text in texts)
    else:
        assert found == texts


@pytest.mark.parametrize("theme", ["torchlens", "dark", "colorblind"])
@pytest.mark.parametrize("name", ["overview", "memory", "debug"])
def test_colours_are_those_of_the_static_picture(gpt, name, theme):
    data = data_of(gpt)
    view, colors = view_of(data, name), data["themes"][theme]
    drawing = static(gpt, name, theme=theme, fold_repeats=False, collapse="none")

    def fill(token):
        if token.startswith("@"):
            return colors["ramp"][int(token[1:])]
        return colors["node_fill"] if token == "node" else colors["roles"][token]["fill"]

    looks = [data["looks"][look] for look in data["columns"][view["looks"]]]
    assert [fill(look[0]) for look in looks[: len(drawing.nodes)]] == [node.fill for node in drawing.nodes]
    assert [bool(look[3]) for look in looks[: len(drawing.nodes)]] == [node.dashed for node in drawing.nodes]


def test_captions_are_those_of_the_static_picture(gpt):
    data = data_of(gpt)
    for name in ("speed", "memory", "compute", "dims", "debug"):
        view = view_of(data, name)
        here = " ".join(data["strings"][line] for line in view["caption"])
        there = " ".join(static(gpt, name, collapse="none").caption)
        sentences = [part for part in there.split(". ") if not part.startswith(("Largest", "Not drawn"))]
        assert sentences
        assert all(part.rstrip(".") in here for part in sentences), name


def test_the_sorted_list_is_sorted_and_shares_add_up(gpt):
    for name in ("speed", "memory", "compute"):
        shares = [share for _, _, share in view_of(data_of(gpt), name)["top"]]
        assert shares
        assert all(a >= b for a, b in pairwise(shares))
        assert sum(shares) <= 101


def test_closed_groups_carry_the_sum_of_what_is_inside(gpt):
    data = data_of(gpt)
    view = view_of(data, "compute")
    graph = data["graphs"][view["graph"]]
    inside = [unit for unit, part in enumerate(graph["units"]) if data["facts"]["flops"][part]]
    groups = {up for unit in inside for up in [graph["parents"][unit]] if up >= 0}
    assert groups
    assert all(any("of FLOPs" in text for text in rows_of(data, view, group)) for group in groups)


def test_a_callers_own_colours_stay(gpt):
    data = data_of(gpt, node_spec_fn=lambda node, spec: replace(spec, fill="#123456"))
    view = view_of(data, "graph")
    assert data["view"] == "graph"
    assert data["looks"][data["columns"][view["looks"]][0]][0] == "#123456"


# -- what opens ----------------------------------------------------------------------------------


def test_a_loop_is_folded_into_passes(rnn):
    data = data_of(rnn)
    view = view_of(data, "sequence")
    graph = data["graphs"][view["graph"]]
    kinds = [data["strings"][kind] for kind in graph["kinds"]]
    assert kinds.count("pass") == 60
    assert len(view["first"]["nodes"]) // 5 < 20
    assert any("box with the number of that pass" in data["strings"][line] for line in view["caption"])


def test_a_long_row_is_cut_into_stretches():
    def long(x):
        for k in range(150):
            x = torch.sin(x) if k % 3 == 0 else torch.cos(x) if k % 2 else x * 1.5
            x = x.abs() if k % 7 == 0 else x
        return x.sum() / 2

    trace = tl.trace(long, torch.randn(3))
    data = data_of(trace, rolled=False, view="memory")
    graph = data["graphs"][view_of(data, "memory")["graph"]]
    assert graph["parents"].count(-1) <= MOST


def test_many_outputs_are_folded():
    trace = tl.trace(lambda x: [x + k for k in range(9)], torch.randn(2))
    data = data_of(trace)
    view = view_of(data, "overview")
    graph = data["graphs"][view["graph"]]
    titles = [rows_of(data, view, item)[0] for item in range(len(graph["units"]), len(graph["parents"]))]
    assert titles == ["+8 more outputs"]
    assert view["first"]["nodes"][::5].count(len(graph["units"])) == 1


def test_explicit_settings_decide_what_is_open(gpt):
    shut = view_of(data_of(gpt, depth=0), "graph")
    wide = view_of(data_of(gpt, collapse=0.0), "graph")
    assert len(wide["open"]) > len(shut["open"])


def test_views_without_evidence_are_left_out():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = tl.trace(lambda x: x + 1, torch.randn(2), fake=True)
        names = [view["name"] for view in data_of(trace)["views"]]
    assert "speed" not in names
    assert "transformer" not in names
    assert "overview" in names


def test_the_view_asked_for_opens_first(gpt):
    assert data_of(gpt, view="memory")["view"] == "memory"
    assert data_of(gpt, theme="paper")["theme"] == "paper"
    assert data_of(gpt)["theme"] is None


def test_the_data_is_json_and_always_the_same(gpt):
    first, second = (json.dumps(page_data(gpt, settings.read({})), allow_nan=False) for _ in range(2))
    assert first == second


def test_a_failed_run_has_a_page():
    def broken(x):
        return x.relu() @ torch.randn(7, 7)

    with pytest.raises(RuntimeError) as caught:
        tl.trace(broken, torch.randn(3, 3))
    data = data_of(caught.value.trace)
    assert any("stopped" in data["strings"][line] for line in view_of(data, "overview")["caption"])


def test_an_empty_function_has_a_page():
    data = data_of(tl.trace(lambda x: x, torch.randn(2)))
    assert data["views"]
