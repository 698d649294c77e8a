"""The legend of an edited trace explains its outlines."""

from __future__ import annotations

import torch
from torch import nn

import torchlens as tl


def test_outlines_are_in_the_legend_where_they_are_drawn() -> None:
    clean = tl.trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), torch.ones(1, 4))
    fork = clean.fork("edited")
    fork.do(tl.func("relu"), tl.add(1.0))
    legend = fork.draw(view="interventions").scene.legend
    assert legend is not None
    texts = [entry.text for entry in legend.entries]
    assert "edited" in texts
    assert "differs from the clean run" in texts
    assert "edited, inferred" not in texts
    edited = next(entry for entry in legend.entries if entry.text == "edited")
    node = next(node for node in fork.draw(view="interventions").nodes if node.id == "relu_1_2")
    assert edited.stroke == node.stroke


def test_a_fork_without_effect_has_no_entry_for_changes() -> None:
    clean = tl.trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.ones(1, 4))
    fork = clean.fork("same")
    fork.do(tl.func("relu"), tl.scale(1.0))
    legend = fork.draw(view="interventions").scene.legend
    assert legend is not None
    assert "differs from the clean run" not in [entry.text for entry in legend.entries]
