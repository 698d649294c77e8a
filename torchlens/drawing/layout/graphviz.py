"""Graphviz ``dot`` in this process, which finds orders with few crossings."""

from __future__ import annotations

import json
from functools import lru_cache
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

from torchlens.drawing.layout.layers import Layers

_LOCK = Lock()
_TABLE = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">'
_UNIT = 10.0
"""Widths and heights that ``dot`` sees: it only has to know what stands left of what."""


class GraphvizError(RuntimeError):
    """Graphviz reported a failure on a layout that it should manage."""


@lru_cache(maxsize=1)
def _context() -> Any:
    from pygraphviz import graphviz

    return graphviz.gvContextWithBuiltins()


def run_dot(source: str) -> dict[str, Any]:
    """Lay out DOT text and return Graphviz' own JSON; one call at a time, as Graphviz demands."""
    from pygraphviz import graphviz

    with _LOCK, TemporaryFile() as file:
        file.write(source.encode("ascii"))
        file.seek(0)
        graph = graphviz.agread(file, None)
        failed = graphviz.gvLayout(_context(), graph, b"dot")
        status, data = graphviz.gvRenderData(_context(), graph, b"json0")
        graphviz.gvFreeLayout(_context(), graph)
        graphviz.agclose(graph)
    if failed or status:
        raise GraphvizError(f"dot ended with status {failed or status}")
    result: dict[str, Any] = json.loads(data)
    return result


def ordered(layers: Layers) -> list[list[int]]:
    """Return the layers in the order that ``dot`` finds for them."""
    laid = run_dot(_source(layers))
    x = {int(entry["name"]): float(entry["pos"].split(",")[0]) for entry in laid["objects"] if "pos" in entry}
    return [sorted(row, key=x.__getitem__) for row in layers.rows]


def _source(layers: Layers) -> str:
    """Write the layers as ranks, held in place by unseen lines from each to the next."""
    size = _UNIT / 72
    lines = [
        "digraph{graph[splines=none nslimit=2 newrank=true nodesep=0.1 ranksep=0.1]",
        f'node[shape=box fixedsize=true label="" width={size:.4f} height={size:.4f}]edge[arrowhead=none]',
    ]
    before: int | None = None
    for row in layers.rows:
        if row:
            lines.append(f"{{rank=same {' '.join(map(str, row))}}}")
            if before is not None:
                lines.append(f"{before}->{row[0]}[style=invis weight=0]")
            before = row[0]
    ports = [_ports(layers, vertex) for vertex in range(len(layers.width))]
    lines += [_node(v, *both) for v, both in enumerate(ports) if max(map(len, both)) > 1]
    for tail, links in enumerate(layers.down):
        for head, here, there, main in links:
            out, into = _end(ports[tail], here, "q"), _end(ports[head], there, "p")
            lines.append(f"{tail}{out}:s->{head}{into}:n[weight={9 if main else 1}]")
    return "\n".join([*lines, "}"])


def _ports(layers: Layers, vertex: int) -> tuple[list[float], list[float]]:
    return (
        sorted({here for _, here, _, _ in layers.up[vertex]}),
        sorted({here for _, here, _, _ in layers.down[vertex]}),
    )


def _end(ports: tuple[list[float], list[float]], port: float, letter: str) -> str:
    if max(map(len, ports)) < 2:
        return ""
    return f":{letter}{ports[letter == 'q'].index(port)}"


def _node(vertex: int, ins: list[float], outs: list[float]) -> str:
    label = f"<{_TABLE}{_cells(ins, 'p')}{_cells(outs, 'q')}</TABLE>>"
    return f"{vertex}[shape=plain fixedsize=false margin=0 label={label}]"


def _cells(ports: list[float], letter: str) -> str:
    """Return a row of the table that stands for a box, with a cell for every port."""
    wide = f'FIXEDSIZE="TRUE" WIDTH="{_UNIT:.0f}" HEIGHT="2"'
    cells = [f'<TD {wide} PORT="{letter}{k}"></TD>' for k in range(len(ports))] or [f"<TD {wide}></TD>"]
    return f"<TR><TD>{_TABLE}<TR>{''.join(cells)}</TR></TABLE></TD></TR>"
