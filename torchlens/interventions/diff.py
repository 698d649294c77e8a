"""``tl.diff``: what differs between two traces of the same model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchlens.errors import check_type
from torchlens.interventions.align import align, shape_of
from torchlens.interventions.compare import largest_change
from torchlens.interventions.rewrite import shared
from torchlens.trace.trace import Trace

if TYPE_CHECKING:
    from torchlens.drawing.draw import Drawing
    from torchlens.trace.op import Op


@dataclass(frozen=True)
class Difference:
    """One op in both traces.

    Attributes
    ----------
    op, other : Op
        In the second and in the first trace.
    change : float or None
        Largest absolute change; ``None`` if it cannot be told.
    reason : str
        Why it cannot be told.
    """

    op: Op
    other: Op
    change: float | None
    reason: str = ""


class Diff:
    """What differs between two traces.

    Attributes
    ----------
    rows : list of Difference
        Every op that stands at the same place in both, in execution order.
    only_first, only_second : list of Op
        Ops without a partner: the structure differs there, and nothing is guessed.
    """

    def __init__(self, first: Trace, second: Trace) -> None:
        self.first, self.second = first, second
        found = align(second, first)
        self.rows = [_difference(op, other) for op, other in found.pairs]
        self.only_first, self.only_second = found.only_second, found.only_first

    @property
    def changed(self) -> list[Difference]:
        """The ops that differ, in execution order."""
        return [row for row in self.rows if row.change]

    @property
    def first_changed(self) -> Difference | None:
        """Where the runs part: the first op that differs."""
        return next(iter(self.changed), None)

    @property
    def same_structure(self) -> bool:
        """Whether every op has a partner."""
        return not self.only_first and not self.only_second

    @property
    def unknown(self) -> list[Difference]:
        """The ops whose change cannot be told."""
        return [row for row in self.rows if row.change is None]

    def table(self, *, limit: int | None = None) -> str:
        """The ops that differ, one a line.

        Parameters
        ----------
        limit : int, optional
            Most lines shown; the rest is counted.
        """
        shown = self.changed[:limit]
        width = max((len(row.op.label) for row in shown), default=0)
        lines = [
            f"{row.op.label:<{width}}  {row.change:<10.4g} {shape_of(row.op)}  {_where(row.op)}".rstrip()
            for row in shown
        ]
        if len(self.changed) > len(shown):
            lines.append(f"… {len(self.changed) - len(shown)} more")
        return "\n".join([self._head(), *lines, *self._rest()])

    def _head(self) -> str:
        same = len(self.rows) - len(self.changed) - len(self.unknown)
        return f"{self.first.name} → {self.second.name}: {len(self.changed)} ops differ, {same} are equal"

    def _rest(self) -> list[str]:
        lines = [f"not comparable: {row.op.label}, {row.reason}" for row in self.unknown]
        lines += [f"only in the first: {op.label} {_where(op)}".rstrip() for op in self.only_first]
        return lines + [f"only in the second: {op.label} {_where(op)}".rstrip() for op in self.only_second]

    def draw(self, path: Any = None, **settings: Any) -> Drawing:
        """The second trace, with every op marked that differs from the first.

        Keywords are those of :meth:`torchlens.Trace.draw`.
        """
        settings.setdefault("view", "interventions")
        return Compared(self.second, self.first).draw(path, **settings)

    def __len__(self) -> int:
        return len(self.changed)

    def __str__(self) -> str:
        return self.table(limit=40)

    def __repr__(self) -> str:
        return f"Diff({self._head()!r})"


class Compared(Trace):
    """A trace seen against another one, which it keeps alive."""

    def __init__(self, trace: Trace, clean: Trace) -> None:
        super().__init__(shared(trace.recording))
        self._clean = clean

    @property
    def parent(self) -> Trace | None:
        return self._clean

    @property
    def compares_inputs(self) -> bool:
        return True


def diff(first: Trace, second: Trace) -> Diff:
    """Compare two traces of the same model: other weights, inputs or edits.

    Parameters
    ----------
    first, second : Trace
        Changes are those of ``second`` against ``first``.

    Returns
    -------
    Diff
        ``print`` it for a table, ``.draw()`` it for a picture.
    """
    for argument, value in (("first", first), ("second", second)):
        check_type(value, Trace, argument=argument, code=f"diff_{argument}_invalid", wanted="a Trace")
    return Diff(first, second)


def _difference(op: Op, other: Op) -> Difference:
    change = largest_change(op, other)
    if change is not None:
        return Difference(op, other, change)
    if op.shapes != other.shapes:
        return Difference(op, other, None, f"shape {shape_of(other)} became {shape_of(op)}")
    if not op.records:
        return Difference(op, other, None, "it has no output")
    return Difference(op, other, None, "its value was not kept in both")


def _where(op: Op) -> str:
    modules = op.modules
    return f"in {modules[-1].address}" if modules and modules[-1].address else ""
