"""The texts of edges: argument slots, shapes, passes, counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from torchlens.drawing.arguments import signature
from torchlens.drawing.fold import Line
from torchlens.drawing.graph import Link
from torchlens.drawing.rows import passes_text, shape_text
from torchlens.drawing.settings import Settings
from torchlens.trace.op import Op
from torchlens.trace.parts import Edge

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace

_SYMMETRIC = frozenset(
    [
        "add",
        "mul",
        "eq",
        "ne",
        "maximum",
        "minimum",
        "logical_and",
        "logical_or",
        "logical_xor",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "isclose",
        "allclose",
    ]
)
"""Functions of two tensors whose order does not matter."""


class LineTexts(NamedTuple):
    """What one edge says."""

    label: str
    head: str
    tooltip: str
    tensors: int


@dataclass(frozen=True, slots=True)
class Names:
    """Names of edges: by reader and argument for a part they play, and of the arms they enter."""

    heads: Mapping[tuple[int, str], str]
    arms: Mapping[Edge, str]


def arms_of(trace: Trace) -> dict[Edge, str]:
    """``then`` or ``else`` for every edge on which data enters an arm of a branch."""
    from torchlens.analysis.branches import entries

    return {edge: "then" if then else "else" for edge, (_, then) in entries(trace.branches).items()}


def line_texts(line: Line, settings: Settings, names: Names) -> list[LineTexts]:
    """The edges that a line is drawn as: links with the same passes together."""
    groups: dict[str, list[Link]] = {}
    for link in line.links:
        groups.setdefault(_passes(link), []).append(link)
    return [_texts(line, links, passes, settings, names) for passes, links in groups.items()]


def _texts(
    line: Line,
    links: list[Link],
    passes: str,
    settings: Settings,
    names: Names,
) -> LineTexts:
    tensors = {(link.source.number, link.edges[0].out_index): link for link in links}
    shapes = ""
    if settings["show_edge_shapes"]:
        shapes = ", ".join(list(dict.fromkeys(map(_shape, tensors.values())))[:3])
    head = _heads(line, links, names.heads)
    arms = ", ".join(dict.fromkeys(names.arms[e] for link in links for e in link.edges if e in names.arms))
    parts = [part for part in (arms, passes, shapes) if part]
    told = [
        f"{_tensor(link)} → {link.target.part.label}, argument {link.edges[0].slot or 'output'}"
        for link in links[:8]
    ]
    more = [f"and {len(links) - 8} more"] if len(links) > 8 else []
    count = len(tensors)
    label = " · ".join([*parts, *([f"×{count}"] if parts and count > 1 else [])])
    return LineTexts(label, head, "\n".join(told + more), count)


def _heads(line: Line, links: list[Link], heads: Mapping[tuple[int, str], str]) -> str:
    if line.target.kind != "unit" or line.target.stub:
        return ""
    texts = list(dict.fromkeys(text for link in links if (text := _head(link, line, heads))))
    if len(texts) > 2 and all(text.isdecimal() for text in texts):
        return passes_text([int(text) for text in texts])
    return ", ".join(texts[:3]) + (f" +{len(texts) - 3}" if len(texts) > 3 else "")


def _tensor(link: Link) -> str:
    label = link.source.part.label
    return label if len(link.source.op.records) < 2 else f"{label}[{link.edges[0].out_index}]"


def _shape(link: Link) -> str:
    edge = link.edges[0]
    shapes = edge.parent.shapes
    return shape_text(shapes[edge.out_index] if edge.out_index < len(shapes) else None)


def _passes(link: Link) -> str:
    """The passes in which a layer gets this tensor, where it does not in all of them."""
    ops = link.target.ops
    if len(ops) < 2:
        return ""
    passes = sorted({edge.child.pass_index for edge in link.edges})
    if len(passes) == len(ops):
        return ""
    return ("pass " if len(passes) == 1 else "passes ") + passes_text(passes)


def _head(link: Link, line: Line, heads: Mapping[tuple[int, str], str]) -> str:
    edge = link.edges[0]
    given = heads.get((edge.child.step, repr(edge.path)))
    if given:
        return given
    if edge.write:
        return "written"
    return slot_name(edge.child, edge.path) if line.ordered and order_matters(edge.child) else ""


def order_matters(op: Op) -> bool:
    """Whether an op would compute something else if its tensors swapped places."""
    return op.kind == "call" and op.type not in _SYMMETRIC


def slot_name(op: Op, path: tuple[object, ...]) -> str:
    """The argument as people know it: its name for named ones, its position inside a list."""
    if len(path) < 2 or op.record is None:
        return ""
    where, key, *rest = path
    inside = "".join(f"[{step}]" for step in rest)
    if where == 1:
        return f"{key}{inside}"
    if rest and op.type in ("cat", "stack", "concat", "hstack", "vstack"):
        return ".".join(map(str, rest))
    found = signature(op.record.func)
    names = (
        [p.name for p in found.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if found
        else []
    )
    if isinstance(key, int) and key < len(names) and op.type not in ("sub", "div", "matmul", "bmm", "pow"):
        return names[key] + inside
    return f"{key}{inside}"
