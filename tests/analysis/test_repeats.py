"""Runs of equal blocks on models whose blocks are known."""

from __future__ import annotations

import torch
from torch import nn

import torchlens as tl
from torchlens.analysis.repeats import repeats

X = torch.randn(2, 8)


class Block(nn.Module):
    def __init__(self, width=8, hidden=16):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Backwards(Block):
    def forward(self, x):
        return self.down(torch.relu(self.up(x))) + x


class Listed(nn.Module):
    def __init__(self, *blocks):
        super().__init__()
        self.h = nn.ModuleList(blocks)

    def forward(self, x):
        for block in self.h:
            x = block(x)
        return x


def found(model, x=X):
    return [
        ([call.module.address for call in repeat.calls], repeat.equal_sizes, repeat.chained, repeat.across)
        for repeat in repeats(tl.trace(model, x))
    ]


def test_blocks_of_a_list_in_numeric_order():
    model = Listed(*(Block() for _ in range(12)))
    assert found(model) == [([f"h.{i}" for i in range(12)], True, True, False)]
    assert repeats(tl.trace(model, X))[0].parent.module.address == ""


def test_blocks_of_a_sequential_inside_the_model():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(*(Block() for _ in range(3)))

        def forward(self, x):
            return self.body(x) * 2

    (repeat,) = repeats(tl.trace(Model(), X))
    assert [call.label for call in repeat.calls] == ["body.0", "body.1", "body.2"]
    assert repeat.parent.module.address == "body"
    assert repeat.class_name == "Block"


def test_sizes_that_differ_are_listed():
    class Wider(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.l = nn.Linear(n, 2 * n)

        def forward(self, x):
            return torch.relu(self.l(x))

    (repeat,) = repeats(tl.trace(Listed(Wider(8), Wider(16), Wider(32)), X))
    assert not repeat.equal_sizes
    assert repeat.sizes == (((2, 16),), ((2, 32),), ((2, 64),))


def test_inner_sizes_count_too():
    assert found(Listed(Block(8, 16), Block(8, 24))) == [(["h.0", "h.1"], False, True, False)]


def test_another_class_or_another_graph_ends_a_run():
    class Odd(Block):
        def forward(self, x):
            return x + self.down(torch.tanh(self.up(x)))

    class Flag(Block):
        def __init__(self, twice):
            super().__init__()
            self.twice = twice

        def forward(self, x):
            x = super().forward(x)
            return x + x if self.twice else x

    assert found(Listed(Block(), Block(), Odd(), Block(), Block())) == [
        (["h.0", "h.1"], True, True, False),
        (["h.3", "h.4"], True, True, False),
    ]
    assert found(Listed(Flag(False), Flag(True), Flag(False))) == []


def test_the_wiring_counts():
    class Wired(nn.Module):
        def __init__(self, straight):
            super().__init__()
            self.straight = straight

        def forward(self, x):
            a, b = torch.sin(x), torch.cos(x)
            return a / b if self.straight else b / a

    assert found(Listed(Wired(True), Wired(False))) == []
    assert found(Listed(Wired(True), Wired(True))) == [(["h.0", "h.1"], True, True, False)]


def test_the_wiring_between_inner_calls_counts():
    class Pair(nn.Module):
        def __init__(self, chain):
            super().__init__()
            self.chain, self.a, self.b = chain, nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            y = self.a(x)
            return self.b(y) + y if self.chain else self.b(x) + y

    assert [names for names, *_ in found(Listed(Pair(True), Pair(False))) if names == ["h.0", "h.1"]] == []


def test_branches_are_not_chained():
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

        def forward(self, x):
            return torch.cat([self.q(x), self.k(x), self.v(x)])

    assert found(Heads()) == [(["q", "k", "v"], True, False, False)]


def test_calls_without_ops_do_not_part_neighbours():
    model = nn.Sequential(Block(), nn.Identity(), Block(), nn.Identity(), Block())
    assert found(model) == [(["0", "2", "4"], True, True, False)]


def test_across_stages():
    stages = nn.Sequential(
        nn.Sequential(Block(8, 16), Block(8, 16)), nn.Sequential(Block(8, 32), Block(8, 32), Block(8, 32))
    )
    assert found(stages) == [
        (["0.0", "0.1", "1.0", "1.1", "1.2"], False, True, True),
        (["0.0", "0.1"], True, True, False),
        (["1.0", "1.1", "1.2"], True, True, False),
    ]


def test_runs_of_several_stages_are_known_to_be_alike():
    model = nn.Sequential(
        Listed(Block(8), Block(8)),
        nn.Sequential(nn.Linear(8, 4), nn.Tanh()),
        Listed(Block(4), Block(4), Block(4)),
        Listed(Backwards(4), Backwards(4)),
    )
    named = ("Block", "Backwards")
    first, second, third = (r for r in repeats(tl.trace(model, X)) if r.class_name in named)
    assert [call.label for call in second.calls] == ["2.h.0", "2.h.1", "2.h.2"]
    assert first.structure == second.structure != third.structure


def test_equal_stages_are_a_run_themselves():
    stages = nn.Sequential(*(nn.Sequential(Block(), Block()) for _ in range(2)))
    assert found(stages) == [
        (["0", "1"], True, True, False),
        (["0.0", "0.1", "1.0", "1.1"], True, True, True),
        (["0.0", "0.1"], True, True, False),
        (["1.0", "1.1"], True, True, False),
    ]


def test_a_residual_add_after_each_call_belongs_to_it():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(8, 8)

        def forward(self, x):
            return torch.relu(self.l(x))

    class Outer(Listed):
        def forward(self, x):
            for block in self.h:
                x = block(x) + x
            return x

    assert found(Outer(Inner(), Inner())) == [(["h.0", "h.1"], True, True, False)]


def test_the_last_layer_without_activation_is_not_in_the_run():
    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

        def forward(self, x):
            for layer in self.l[:-1]:
                x = torch.relu(layer(x))
            return self.l[-1](x)

    assert found(Mlp()) == [(["l.0", "l.1", "l.2"], True, True, False)]


def test_one_block_called_again_is_a_run_of_calls():
    block = Block()

    def loop(x):
        for _ in range(3):
            x = block(x)
        return x

    (repeat,) = repeats(tl.trace(loop, X))
    assert [call.pass_index for call in repeat.calls] == [1, 2, 3]


def test_nothing_repeats_in_a_single_block():
    assert found(Block()) == []


def test_nothing_needs_to_be_kept():
    trace = tl.trace(Listed(Block(), Block()), X, save=False)
    assert repeats(trace)[0].equal_sizes
