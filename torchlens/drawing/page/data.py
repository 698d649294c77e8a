"""The data of the page: the trace once, and small columns for each view."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from torchlens.drawing import captions, evidence
from torchlens.drawing import settings as keywords
from torchlens.drawing.graph import Unit
from torchlens.drawing.page.facts import Facts
from torchlens.drawing.page.first import begin
from torchlens.drawing.page.looks import Looks, themes
from torchlens.drawing.page.parts import Parts
from torchlens.drawing.page.strings import RowSets, Strings
from torchlens.drawing.page.tree import Group, Item, groups, tree_of
from torchlens.drawing.page.view import Picture, picture_of
from torchlens.drawing.plan import graph_of, is_statistic
from torchlens.drawing.settings import VIEWS, Settings
from torchlens.drawing.views import TABLE
from torchlens.errors import InvalidArgumentError

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace

VERSION = 1


class _Key(NamedTuple):
    rolled: bool
    orphans: bool
    buffers: str


def page_data(trace: Trace, asked: Settings) -> dict[str, Any]:
    """Everything that the page shows of a trace.

    Parameters
    ----------
    trace : Trace
    asked : Settings
        As the caller gave them: they choose the view that the page opens with, and hold for it.

    Returns
    -------
    dict
        Plain data, ready for JSON.
    """
    return _Data(trace, asked).whole()


class _Data:
    def __init__(self, trace: Trace, asked: Settings) -> None:
        self.trace = trace
        self.asked = asked
        self.strings = Strings()
        self.rows = RowSets(self.strings)
        self.looks = Looks()
        self.facts = Facts(self.strings)
        self.parts: dict[_Key, Parts] = {}
        self.numbers: dict[_Key, int] = {}
        self.encoded: list[dict[str, Any]] = []
        self.columns: dict[tuple[int, ...], int] = {}

    def whole(self) -> dict[str, Any]:
        """All parts; the tables come last, when everything is numbered."""
        first = self.asked["view"] or ("graph" if self._is_special() else "overview")
        names = ["graph", *VIEWS] if first == "graph" else list(VIEWS)
        views = [view for name in names if (view := self._view(name, self._settings(name, first)))]
        return {
            "version": VERSION,
            "title": self.strings.number(self.trace.name),
            "header": [self.strings.number(line) for line in captions.header_lines(self.trace)],
            "view": first,
            "theme": self.asked["theme"] if self.asked.explicit("theme") else None,
            "views": views,
            "graphs": self.encoded,
            "facts": self.facts.columns,
            "columns": list(self.columns),
            "rows": self.rows.table,
            "looks": list(self.looks.table),
            "themes": themes(),
            "strings": self.strings.table,
        }

    def _is_special(self) -> bool:
        """Whether the caller asked for more than a page."""
        plain = {"view", "theme", "file_format", "wrap", "dpi", "long_edges", "show_legend"}
        return any(name not in plain and self.asked.explicit(name) for name in self.asked.table)

    def _settings(self, name: str, first: str) -> Settings | None:
        """The settings of a view; those of the caller for the first.  ``None``: nothing to show."""
        if name == first and self.asked["view"] == (None if name == "graph" else name):
            return evidence.check(self.trace, self.asked)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = {} if name == "graph" else {"view": name}
                return evidence.check(self.trace, keywords.read(given))
        except InvalidArgumentError:
            return None

    def _view(self, name: str, settings: Settings | None) -> dict[str, Any] | None:
        if settings is None:
            return None
        key = self._key(settings)
        if key not in self.parts:
            graph = graph_of(self.trace, settings)
            by_pass = self.trace.is_recurrent and not evidence.passes_interleave(self.trace)
            self.parts[key] = Parts(graph, tree_of(graph, by_pass=by_pass and not key.rolled))
        picture = picture_of(self.parts[key], settings)
        first = begin(picture, settings)
        return self._encoded_view(name, picture, settings, key) | {"first": first}

    def _key(self, settings: Settings) -> _Key:
        """What tells one graph from another; settings that make no difference are left out."""
        trace, buffers = self.trace, settings["show_buffers"]
        if buffers == "meaningful" and not any(op.kind == "buffer" and is_statistic(op) for op in trace.ops):
            buffers = "always"
        orphans = settings["show_orphans"] and trace.completed and bool(trace._orphans)
        return _Key(settings["rolled"], orphans, buffers)

    def _encoded_view(self, name: str, picture: Picture, settings: Settings, key: _Key) -> dict[str, Any]:
        number = {item: k for k, item in enumerate(picture.nodes)}
        nodes = list(picture.nodes.values())
        text = self.strings.number
        if key not in self.numbers:
            self.numbers[key] = len(self.encoded)
            self.encoded.append(self._graph(picture, number))
        return {
            "name": name,
            "question": text(TABLE[name].question if name in TABLE else "The graph as asked for."),
            "graph": self.numbers[key],
            "rows": self._column([self.rows.number(node.rows) for node in nodes]),
            "looks": self._column([self.looks.number(node) for node in nodes]),
            "sizes": [
                [k, round(node.size[0], 1), round(node.size[1], 1)]
                for k, node in enumerate(nodes)
                if node.size
            ],
            "heads": self._column([text(wire.head) for wire in picture.wires]),
            "labels": self._column([text(wire.label) for wire in picture.wires]),
            "caption": [text(line) for line in picture.caption],
            "legend": self.looks.legend(picture.legend),
            "top": [[number[unit], text(value), share] for unit, value, share in picture.top],
            "metric": text(picture.top_title),
            "direction": settings["direction"],
            "fontSize": settings["font_size"],
            "focus": [number[item] for item in picture.focus],
            "open": [number[group] for group in groups(picture.root) if group.open and group.parent],
        }

    def _column(self, values: list[int]) -> int:
        """Number of a column; equal ones stand there once."""
        return self.columns.setdefault(tuple(values), len(self.columns))

    def _graph(self, picture: Picture, number: dict[Item, int]) -> dict[str, Any]:
        """Units, groups with their parents, and wires."""
        parent = [-1] * len(number)
        for group in groups(picture.root):
            for item in group.items:
                parent[number[item]] = number.get(group, -1)
        units = [item for item in number if isinstance(item, Unit)]
        made = [item for item in number if isinstance(item, Group)]
        return {
            "units": [self.facts.number(unit) for unit in units],
            "parents": parent,
            "kinds": [self.strings.number(group.kind) for group in made],
            "sources": [number[wire.source] for wire in picture.wires],
            "targets": [number[wire.target] for wire in picture.wires],
            "counts": [wire.count for wire in picture.wires],
            "dashed": [k for k, wire in enumerate(picture.wires) if wire.dashed],
        }
