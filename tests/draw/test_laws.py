"""Laws of the visible graph: nothing is lost, whatever is folded, closed or rolled."""

from __future__ import annotations

import itertools
from collections import Counter

import nets
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import torchlens as tl
from torchlens.drawing.collapse import closed_at, levels
from torchlens.drawing.fold import close_deeper, fold_repeats, show
from torchlens.drawing.graph import build, units_in


class Tree(nn.Module):
    """A random nest of modules: a number is that many ops, a list is a module with children."""

    def __init__(self, plan) -> None:
        super().__init__()
        self.plan = [item if isinstance(item, int) else None for item in plan]
        self.parts = nn.ModuleList(Tree(item) for item in plan if not isinstance(item, int))

    def forward(self, x):
        parts = iter(self.parts)
        start = x
        for count in self.plan:
            if count is None:
                x = next(parts)(x)
            for _ in range(count or 0):
                x = x + start
        return x


plans = st.recursive(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    lambda inner: st.lists(inner | st.integers(1, 2), min_size=1, max_size=4),
    max_leaves=12,
)


def check(shape, trace, graph):
    """Every op is in exactly one node; every edge is on exactly one line or inside one node."""
    drawn = Counter(op.step for node in shape.nodes for unit in node.units for op in unit.ops)
    outside = Counter(op.step for unit in shape.outside for op in unit.ops)
    assert drawn + outside == Counter(range(len(trace.ops)))
    assert not set(drawn) & set(outside)
    on_lines = [edge for line in shape.lines for link in line.links for edge in link.edges]
    inside = [edge for link in shape.inner for edge in link.edges]
    every = [edge for op in trace.ops for edge in op.inputs]
    if not shape.outside:
        assert len(on_lines) + len(inside) == len(every)
        assert Counter(map(repr, on_lines + inside)) == Counter(map(repr, every))
    nodes = set(map(id, shape.nodes))
    assert all(id(line.source) in nodes and id(line.target) in nodes for line in shape.lines)
    boxes = {graph.root, *shape.boxes}
    assert all(node.around in boxes for node in shape.nodes)
    assert all(not line.back for line in shape.lines) or graph.rolled


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans, depth=st.integers(0, 3), level=st.floats(0, 1), rolled=st.booleans(), fold=st.booleans())
def test_nothing_is_lost_in_random_nests(plan, depth, level, rolled, fold):
    trace = tl.trace(Tree(plan), torch.ones(2))
    graph = build(trace, rolled=rolled)
    runs = fold_repeats(graph) if fold else []
    table = levels(graph, runs)
    size = table[round(level * (len(table) - 1))].size
    for closed in (set(), close_deeper(graph, depth=depth), closed_at(graph, size)):
        check(show(graph, closed=closed, runs=runs), trace, graph)
    for scope in graph.scopes():
        check(show(graph, runs=runs, focus=[scope]), trace, graph)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans, fold=st.booleans())
def test_counted_levels_are_drawn_levels_and_fall(plan, fold):
    graph = build(tl.trace(Tree(plan), torch.ones(2)))
    runs = fold_repeats(graph) if fold else []
    table = levels(graph, runs)
    counts = [len(show(graph, closed=closed_at(graph, row.size), runs=runs).nodes) for row in table]
    assert counts == [row.visible for row in table]
    assert counts == sorted(counts, reverse=True)
    assert table[0].level == 0
    assert [row.level for row in table] == sorted({row.level for row in table})
    closed = [closed_at(graph, row.size) for row in table]
    assert all(a <= b for a, b in itertools.pairwise(closed))
    if len(table) > 1:
        assert table[-1].level == 1
        assert all(not shape.boxes for shape in [show(graph, closed=closed[-1], runs=runs)])


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("make", [nets.stack, nets.loop, nets.cell_loop, nets.residual])
def test_nothing_is_lost_in_real_models(make, rolled):
    trace = make()
    graph = build(trace, rolled=rolled)
    runs = fold_repeats(graph)
    for folded in ([], runs):
        for row in levels(graph, folded):
            check(show(graph, closed=closed_at(graph, row.size), runs=folded), trace, graph)


def test_sizes_of_scopes_count_their_units(stack):
    graph = build(stack)
    assert graph.root.size == len(stack.ops)
    assert all(scope.size == len(units_in(scope)) for scope in graph.scopes())


def test_only_recurrence_runs_back(loop):
    rolled = show(build(loop, rolled=True))
    back = [(line.source.unit.op.type, line.target.unit.op.type) for line in rolled.lines if line.back]
    assert back == [("tanh", "linear")]
    assert not any(line.back for line in show(build(loop)).lines)


def test_edge_counts_of_scenes_add_up(stack):
    """Each scene edge stands for its tensors; with all open that is one per argument here."""
    drawing = stack.draw()
    arguments = sum(len({(e.parent.step, e.out_index) for e in op.inputs}) for op in stack.ops)
    assert sum(edge.count for edge in drawing.edges) == arguments
