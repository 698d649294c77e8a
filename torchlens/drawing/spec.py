"""How one node looks, as a user's function may change it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from torchlens.drawing.scene import Motif, Row, Shape
from torchlens.errors import InvalidArgumentError, short

_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """How a node looks.

    Change it with :func:`dataclasses.replace` or :meth:`with_row` and return it from ``node_spec_fn``.

    Attributes
    ----------
    rows : tuple of Row or str
        Lines of text; the first one is the title.  A plain string becomes a title or detail row.
    fill, stroke : str
        Colours as ``#RRGGBB``.
    ink : str
        Text colour; if ``fill`` changes and ``ink`` does not, a readable one is chosen.
    stroke_width : float
    dashed : bool
    shape : {"rounded", "box", "ellipse", "octagon"}
    motif : {None, "diagonal", "cross", "dots", "horizontal"}
    tooltip : str
    size : tuple of float, optional
        Width and height in points; the text stands beside the node if it does not fit.
    """

    rows: tuple[Row | str, ...]
    fill: str
    stroke: str
    ink: str
    stroke_width: float = 1.0
    dashed: bool = False
    shape: Shape = "rounded"
    motif: Motif | None = None
    tooltip: str = ""
    size: tuple[float, float] | None = None

    @property
    def title(self) -> str:
        """Text of the first row."""
        first = self.rows[0] if self.rows else ""
        return first if isinstance(first, str) else first.text

    def with_row(self, text: str) -> NodeSpec:
        """The same look with one more line of text."""
        return replace(self, rows=(*self.rows, text))


class DrawnNode(NamedTuple):
    """What ``node_spec_fn`` gets as its node.

    ``op`` is set for one op, ``layer`` for one layer of a rolled drawing; ``call`` and ``ops`` for a
    closed module call.  What does not apply is ``None``.
    """

    label: str
    op: Any
    layer: Any
    call: Any
    ops: tuple[Any, ...]


def checked_spec(value: Any, node: DrawnNode) -> NodeSpec:
    """Refuse what a user's function returned if it is no usable look."""
    problem = _problem(value)
    if problem:
        raise InvalidArgumentError(
            f"node_spec_fn returned {short(value)} for {node.label!r}: {problem}.",
            code="draw_node_spec_invalid",
            argument="node_spec_fn",
            value=value,
            remedy="Return None, or the given NodeSpec with fields replaced.",
        )
    assert isinstance(value, NodeSpec)
    return replace(value, rows=tuple(_row(row, i) for i, row in enumerate(value.rows)))


def _problem(value: Any) -> str | None:
    if not isinstance(value, NodeSpec):
        return f"it is a {type(value).__name__}"
    for name in ("fill", "stroke", "ink"):
        color = getattr(value, name)
        if not (isinstance(color, str) and _COLOR.fullmatch(color)):
            return f"{name} is {short(color)}, not a colour like '#FFCC00'"
    if not value.rows or not all(isinstance(row, (str, Row)) for row in value.rows):
        return "rows are not lines of text"
    if value.shape not in ("rounded", "box", "ellipse", "octagon"):
        return f"shape is {short(value.shape)}"
    if value.motif not in (None, "diagonal", "cross", "dots", "horizontal"):
        return f"motif is {short(value.motif)}"
    return None


def _row(row: Row | str, position: int) -> Row:
    return row if isinstance(row, Row) else Row(row, "detail" if position else "title")
