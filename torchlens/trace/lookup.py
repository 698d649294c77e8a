"""Finding parts of a trace by the names that are printed anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlens.errors import NotFoundError, nearest, short

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace


class Lookup:
    """One table from printed name to part."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._named: dict[str, Any] = {}
        for buffer in trace.buffers:
            self._add(buffer.addresses, buffer)
        for param in trace.params:
            self._add(param.addresses, param)
        for module in trace.modules:
            self._add(module.addresses, module)
            if len(module.calls) > 1:
                self._add([call.label for call in module.calls], module.calls)
        for layer in trace.layers:
            self._named[layer.label] = layer
            if layer.num_passes > 1:
                self._named.update({op.label: op for op in layer.ops})
        for op in trace.ops:
            if op.kind in ("call", "input", "output", "buffer", "constant"):
                self._named.setdefault(f"{op.layer.label}:{op.pass_index}", op)

    def _add(self, names: Any, part: Any) -> None:
        parts = part if isinstance(part, list) else [part] * len(names)
        self._named.update(zip(names, parts))

    def find(self, key: Any) -> Any:
        """The part of that name, position or slice."""
        if isinstance(key, slice):
            return self._trace.ops[key]
        if isinstance(key, int) and not isinstance(key, bool):
            if -len(self._trace.ops) <= key < len(self._trace.ops):
                return self._trace.ops[key]
            raise NotFoundError(f"The trace has {len(self._trace.ops)} ops, none at {key}.", key=key)
        found = self._named.get(key) if isinstance(key, str) else None
        if found is None:
            close = nearest(key, self._named) if isinstance(key, str) else ()
            raise NotFoundError(f"Nothing in the trace is named {short(key)}.", key=key, nearest=close)
        return found

    def has(self, key: object) -> bool:
        """Whether :meth:`find` succeeds, or the part itself belongs to the trace."""
        if isinstance(key, (int, str)):
            try:
                self.find(key)
            except NotFoundError:
                return False
            return True
        return any(key is op for op in self._trace.ops)
