"""The nine views: each a bundle of settings that answers one question about a model.

Settings are defaults; every keyword wins over them.  What a view needs to know of a trace stands in
``evidence``, what it says under the header in ``captions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class View(NamedTuple):
    """A view: the question it answers, and its settings."""

    question: str
    settings: Mapping[str, Any]


def _view(question: str, **settings: Any) -> View:
    return View(question, MappingProxyType(settings))


OVERVIEW = _view("What is this model?", rolled=True, fold_repeats=True, collapse="auto", wrap=True)
DEBUG = _view(
    "Where does it go wrong?",
    collapse="none",
    show_buffers="always",
    show_redundant_args=True,
    show_orphans=True,
    show_legend=True,
)
SPEED = _view(
    "Where does the time go?", node_style="profiling", show_legend=True, color_by="time", scale="rank"
)
MEMORY = _view(
    "What takes the memory?",
    node_style="profiling",
    show_legend=True,
    color_by="bytes",
    scale="rank",
    show_saved_for_backward=True,
)
COMPUTE = _view(
    "Where are the FLOPs?", node_style="profiling", show_legend=True, color_by="flops", scale="rank"
)
DIMS = _view("How do the tensors change size?", collapse="none", size_by="dims")
TRANSFORMER = _view("How is the block wired?", direction="leftright")
SEQUENCE = _view("What happens step by step?", rolled=False, color_by="pass", stack_by="pass")
INTERVENTIONS = _view("What did the edits change?", show_legend=True)

TABLE: Mapping[str, View] = MappingProxyType(
    {
        "overview": OVERVIEW,
        "debug": DEBUG,
        "speed": SPEED,
        "memory": MEMORY,
        "compute": COMPUTE,
        "dims": DIMS,
        "transformer": TRANSFORMER,
        "sequence": SEQUENCE,
        "interventions": INTERVENTIONS,
    }
)
SETTINGS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: view.settings for name, view in TABLE.items()}
)
