"""The trace: everything one run of a model did, as a graph that can be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from torchlens._collector import rare_collections
from torchlens.capture.recording import Audit, EditRecord, Failure, Recording
from torchlens.trace.build import Builder
from torchlens.trace.costs import FactsTable, Totals
from torchlens.trace.lookup import Lookup
from torchlens.trace.op import Layer, Op
from torchlens.trace.parts import Buffer, Call, Module, Param

if TYPE_CHECKING:
    from pathlib import Path

    import pandas

    from torchlens.analysis.branches import Branch, Read
    from torchlens.drawing.draw import Drawing
    from torchlens.interventions.fork import Edit, Fork


class Trace:
    """The record of one run.

    Built from the plain recording when first used.  It holds the kept values, the model's output as
    returned, and parameters and buffers by reference; it does not hold the model.

    Attributes
    ----------
    ops : list of Op
        Inputs, calls, buffers and constants where first used, outputs: in execution order.
    layers : list of Layer
        Ops grouped by place: the passes of a loop are one layer.
    modules, params, buffers : list
        Of the model, in registration order.
    calls : list of Call
        Every module call, in order.
    output : object
        What the model returned.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.live_edits: list[Edit] = []
        self.ops: list[Op]
        self.layers: list[Layer]
        self.modules: list[Module]
        self.params: list[Param]
        self.buffers: list[Buffer]
        self.calls: list[Call]
        self.call_steps: list[int]

    def __getattr__(self, name: str) -> Any:
        if name in _BUILT and "recording" in self.__dict__:
            self.ops, self.layers, self.call_steps = [], [], []
            with rare_collections():
                Builder(self).build()
            return self.__dict__[name]
        raise AttributeError(f"Trace has no attribute {name!r}.")

    # -- what ran ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Title of the model."""
        return self.recording.name

    @property
    def output(self) -> Any:
        """What the model returned, in the same containers."""
        return self.recording.output

    @property
    def completed(self) -> bool:
        """Whether the forward returned."""
        return self.recording.failure is None

    @property
    def failure(self) -> Failure | None:
        """Where the forward stopped, if it raised."""
        return self.recording.failure

    @property
    def audit(self) -> Audit | None:
        """What ran outside of recorded calls, if the trace was made with ``audit=True``."""
        return self.recording.audit

    @cached_property
    def inputs(self) -> list[Op]:
        """The ops of kind ``"input"``."""
        return [op for op in self.ops if op.kind == "input"]

    @cached_property
    def outputs(self) -> list[Op]:
        """The ops of kind ``"output"``."""
        return [op for op in self.ops if op.kind == "output"]

    @property
    def edits(self) -> list[EditRecord]:
        """The interventions made on this trace, in order."""
        return self.recording.edits

    @property
    def parent(self) -> Trace | None:
        """The trace that this one was forked from, if it is one and that still exists."""
        return None

    @property
    def compares_inputs(self) -> bool:
        """Whether it is compared with its parent although the inputs differ."""
        return False

    # -- facts ---------------------------------------------------------------------------------

    @cached_property
    def facts_table(self) -> FactsTable:
        """Facts computed on demand; read them at the ops."""
        return FactsTable(self)

    @property
    def totals(self) -> Totals:
        """Sums over all ops."""
        return self.facts_table.totals

    @cached_property
    def branches(self) -> list[Branch]:
        """Python branches taken on a tensor's value."""
        from torchlens.analysis.branches import branches

        return branches(self)

    @cached_property
    def reads(self) -> list[Read]:
        """Values that left the graph into Python: ``item()``, ``float()``, ``tolist()``, truth values."""
        from torchlens.analysis.branches import reads

        return reads(self)

    @property
    def is_recurrent(self) -> bool:
        """Whether some layer ran more than once."""
        return any(layer.num_passes > 1 for layer in self.layers)

    @cached_property
    def _orphans(self) -> set[int]:
        """Steps of the calls that no path joins to an input or an output."""
        joined = [op.kind in ("input", "output") for op in self.ops]
        below, above = list(joined), list(joined)
        for op in self.ops:
            below[op.step] = below[op.step] or any(below[edge.parent.step] for edge in op.inputs)
        for op in reversed(self.ops):
            above[op.step] = above[op.step] or any(above[edge.child.step] for edge in op.children_edges)
        return {op.step for op in self.ops if not below[op.step] and not above[op.step]}

    def is_orphan(self, op: Op) -> bool:
        """Whether no path joins an op to an input or an output."""
        return op.step in self._orphans

    @cached_property
    def _param_storages(self) -> dict[int, Param]:
        found = {}
        for param, record in zip(self.params, self.recording.params):
            if record.facts is not None and record.facts.storage is not None:
                found[record.facts.storage] = param
        return found

    def params_of(self, op: Op) -> list[Param]:
        """The parameters that an op reads, directly or as views."""
        if op.record is None:
            return []
        from torchlens.capture.recording import records_in

        found: dict[int, Param] = {}
        for _, record in records_in((op.record.args, op.record.kwargs)):
            param = self.params[record.index] if record.source == "param" else None
            if param is None and record.source == "op":
                fact = record.facts
                param = self._param_storages.get(fact.storage) if fact and fact.storage else None
            if param is not None:
                found[param.index] = param
        return list(found.values())

    def edit_of(self, op: Op) -> EditRecord | None:
        """The last edit that hit an op."""
        found = None
        for position, steps in self.recording.edited.items():
            if op.step in steps:
                found = self.recording.edits[position]
        return found

    # -- interventions -------------------------------------------------------------------------

    def fork(self, name: str | None = None) -> Fork:
        """A trace that shares every value with this one until an edit changes it.

        Parameters
        ----------
        name : str, optional
            Title; that of this trace by default.
        """
        from torchlens.interventions.fork import Fork

        return Fork(self, name=name)

    def do(self, site: Any, action: Any) -> Fork:
        """Fork this trace and make one edit there; see :meth:`torchlens.interventions.fork.Fork.do`."""
        return self.fork().do(site, action)

    def recorded_ops(self, first: int, end: int) -> list[Op]:
        """The ops of the recorded calls ``first`` to ``end - 1``."""
        return [self.ops[step] for step in self.call_steps[first:end]]

    @cached_property
    def _call_positions(self) -> dict[int, int]:
        return {step: position for position, step in enumerate(self.call_steps)}

    def call_index(self, op: Op) -> int:
        """Position of an op among the recorded calls."""
        return self._call_positions[op.step]

    @cached_property
    def _children_of_calls(self) -> dict[int, list[Call]]:
        found: dict[int, list[Call]] = {}
        for call, record in zip(self.calls, self.recording.module_calls):
            found.setdefault(record.parent, []).append(call)
        return found

    def child_calls(self, index: int) -> list[Call]:
        """The module calls made directly by call ``index`` (-1: by nothing)."""
        return self._children_of_calls.get(index, [])

    # -- lookup --------------------------------------------------------------------------------

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self)

    @overload
    def __getitem__(self, key: int) -> Op: ...
    @overload
    def __getitem__(self, key: slice) -> list[Op]: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: int | str | slice) -> Any:
        """An op by position, or a layer, op, module, parameter or buffer by its name."""
        return self._lookup.find(key)

    def __contains__(self, key: object) -> bool:
        return self._lookup.has(key)

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    # -- views ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        from torchlens.trace.text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        state = "" if self.completed else ", stopped by an exception"
        return f"Trace({self.name!r}, {len(self.recording.calls)} ops{state})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The summary card and overview that notebooks show."""
        from torchlens.drawing.notebook import card

        return card(self)

    def summary(self, *, depth: int | None = None) -> str:
        """A table of the module calls: class, address, output shape, parameters, FLOPs.

        Parameters
        ----------
        depth : int, optional
            Deepest nesting listed.
        """
        from torchlens.trace.text import module_table

        return module_table(self, depth=depth)

    def save(self, path: Any, *, values: bool = True) -> Path:
        """Write this trace to one file, which :func:`torchlens.load` reads back.

        Parameters
        ----------
        path : str or path
            The suffix ``.tlens`` is added where there is none.  An existing file is replaced when the
            new one is complete.
        values : bool
            Store the values of tensors too; without them the graph and all facts about it.

        Returns
        -------
        Path
            Where it was written.

        Raises
        ------
        InvalidArgumentError
            For a path that cannot be one, before anything is written.
        SaveError
            If writing fails; an existing file is then as it was.
        """
        from torchlens.storage.save import save

        return save(self, path, values=values)

    def source(self, op_or_module: Any) -> str:
        """The source of a module's forward, or of the function that made an op, with labels beside it.

        Parameters
        ----------
        op_or_module : Op, Layer, Module, Call, or a name or position that looks one up
        """
        from torchlens.trace.source import annotated_source

        return annotated_source(self, op_or_module)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per op, indexed by label; needs pandas."""
        from torchlens.trace.frame import to_frame

        return to_frame(self)

    def draw(self, path: Any = None, **settings: Any) -> Drawing:
        """Draw the graph; see :func:`torchlens.drawing.draw.draw` for all keywords."""
        from torchlens.drawing.draw import draw

        with rare_collections():
            return draw(self, path, **settings)


_BUILT = frozenset(["ops", "layers", "modules", "params", "buffers", "calls", "call_steps"])
