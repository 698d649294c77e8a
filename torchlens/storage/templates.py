"""Arguments and results as JSON: plain values as they are, everything else as ``[tag, ...]``."""

from __future__ import annotations

import base64
import math
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import torch

from torchlens.capture.recording import TensorRecord
from torchlens.errors import short
from torchlens.storage import names
from torchlens.storage.checks import BIGGEST, DamagedError, place, row, rows, text, whole
from torchlens.storage.layout import DEEPEST
from torchlens.storage.opaque import Opaque, OpaqueFunction, opaque, opaque_function

_SMALL_INT = 1 << 256
_LONGEST_TEXT = 2000


class Writer:
    """Turns arguments into JSON.

    ``number`` names a tensor record or, in what the model returned, a tensor; or says in words what it
    is, if it is not stored.  With ``objects`` the
    attributes of plain objects are kept too, and ``restored`` collects the types that change.
    """

    def __init__(self, number: Callable[[Any], Any], *, objects: bool = False) -> None:
        self._number = number
        self._objects = objects
        self._inside: list[int] = []
        self.restored: set[str] = set()

    def write(self, value: Any) -> Any:
        """One value."""
        kind = value.__class__
        if value is None or kind is str or kind is bool or (kind is int and -_SMALL_INT < value < _SMALL_INT):
            return value
        if kind is float:
            return value if math.isfinite(value) else ["f", str(value)]
        if isinstance(value, (TensorRecord, torch.Tensor)):
            number = self._number(value)
            if isinstance(number, str):
                self.restored.add("Tensor")
                return ["o", "Tensor", number]
            return None if number is None else ["r", number]
        plain = _written_plain(value)
        if plain is not None:
            return plain
        if len(self._inside) >= DEEPEST or id(value) in self._inside:
            return _written_text(value)
        self._inside.append(id(value))
        try:
            return self._container(value)
        finally:
            self._inside.pop()

    def _container(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return ["nt", kind.__name__, list(kind._fields), *map(self.write, value)]
        if isinstance(value, tuple):
            return ["t", *map(self.write, value)]
        if kind is slice:
            return ["s", *map(self.write, (value.start, value.stop, value.step))]
        if isinstance(value, Mapping):
            self._note(kind, dict)
            return ["d", *([self.write(key), self.write(value[key])] for key in list(value))]
        if isinstance(value, (list, set, frozenset)) or kind.__name__ == "deque":
            self._note(kind, list)
            return ["l", *map(self.write, value)]
        return self._object(value)

    def _object(self, value: Any) -> Any:
        held = _attributes(value) if self._objects else None
        if held is None:
            return _written_text(value)
        self.restored.add(type(value).__name__)
        return [*_written_text(value)[:3], *([name, self.write(item)] for name, item in held.items())]

    def _note(self, kind: type, wanted: type) -> None:
        if kind is not wanted:
            self.restored.add(kind.__name__)


def _attributes(value: Any) -> dict[str, Any] | None:
    """The attributes that a search for tensors looks at (see ``capture.arguments.tensors_in``)."""
    if isinstance(value, (torch.nn.Module, type)) or callable(value):
        return None
    if is_dataclass(value):
        return {one.name: getattr(value, one.name, None) for one in fields(value)}
    held = getattr(value, "__dict__", None)
    return {str(name): item for name, item in held.items()} if isinstance(held, dict) else None


def _written_plain(value: Any) -> Any:
    """What is written without looking inside; ``None`` for anything else."""
    if value is ...:
        return ["e"]
    if isinstance(value, torch.Size):
        return ["sz", *map(int, value)]
    if isinstance(value, torch.dtype):
        return ["dt", names.name_of(value)]
    if isinstance(value, torch.layout):
        return ["lay", names.name_of(value)]
    if isinstance(value, torch.memory_format):
        return ["mf", names.name_of(value)]
    if isinstance(value, torch.device):
        return ["dev", str(value)]
    if isinstance(value, complex):
        return ["c", str(value.real), str(value.imag)]
    if isinstance(value, (bytes, bytearray)):
        return ["b", base64.b64encode(value).decode()]
    if isinstance(value, torch.Generator):
        return ["gen", str(value.device)]
    if isinstance(value, (str, int, float)):
        return _written_number(value)
    return None


def _written_number(value: Any) -> Any:
    """Subclasses of plain types as what they are; numbers too long for JSON as text."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else ["f", str(float(value))]
    return int(value) if -_SMALL_INT < value < _SMALL_INT else ["i", hex(value)]


def _written_text(value: Any) -> list[Any]:
    told = str(value) if isinstance(value, Opaque) else short(value, limit=_LONGEST_TEXT)
    if callable(value) and not isinstance(value, torch.nn.Module):
        name = getattr(value, "__name__", None)
        if isinstance(name, str):
            return ["fn", name, told]
    return ["o", type(value).__name__, told]


class Reader:
    """Turns JSON back into arguments; ``records`` are what tensors are named by."""

    def __init__(self, records: Sequence[Any]) -> None:
        self._records = records
        self._depth = 0

    def read(self, value: Any) -> Any:
        """One value."""
        kind = value.__class__
        if value is None or kind is int or kind is bool or kind is float:
            return value
        if kind is str:
            return text(value)
        if kind is not list or not value or type(value[0]) is not str:
            raise DamagedError("an argument was expected")
        if value[0] == "r":
            return self._records[place(row(value, 2)[1], self._records)]
        reader = _READERS.get(value[0])
        if reader is None:
            return opaque("object", f"<{value[0][:40]!a}, written by a newer torchlens>")
        self._depth += 1
        if self._depth > 2 * DEEPEST:
            raise DamagedError("arguments are nested too deeply")
        try:
            return reader(self, value)
        finally:
            self._depth -= 1

    def items(self, value: Any, start: int = 1) -> list[Any]:
        """The items of a container, from a position on."""
        read = self.read
        return [read(item) for item in value[start:]]

    def pairs(self, value: Any, start: int) -> dict[Any, Any]:
        """Keys with their values."""
        found = {}
        for pair in value[start:]:
            key, item = row(pair, 2)
            try:
                found[self.read(key)] = self.read(item)
            except TypeError:
                raise DamagedError("a key was expected") from None
        return found

    def call(self, value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """``(args, kwargs)``."""
        args, kwargs = self.read(value[0]), self.read(value[1])
        if type(args) is not tuple or type(kwargs) is not dict or any(type(key) is not str for key in kwargs):
            raise DamagedError("the arguments of a call were expected")
        return args, kwargs


def _slice(reader: Reader, value: Any) -> Any:
    _, start, stop, step = row(value, 4)
    return slice(reader.read(start), reader.read(stop), reader.read(step))


def _named_tuple(reader: Reader, value: Any) -> Any:
    _, kind, given = row(value, 3)
    items = reader.items(value, 3)
    made = _tuple_type(text(kind), tuple(map(text, rows(given))))
    if made is None or len(made._fields) != len(items):
        raise DamagedError("a named tuple was expected")
    return made(*items)


@lru_cache(maxsize=256)
def _tuple_type(name: str, given: tuple[str, ...]) -> Any:
    try:
        return namedtuple(name, given)
    except ValueError:
        return None


def _number(given: Any) -> float:
    try:
        return float(text(given))
    except ValueError:
        raise DamagedError("a number was expected") from None


def _bytes(reader: Reader, value: Any) -> bytes:
    try:
        return base64.b64decode(text(row(value, 2)[1]), validate=True)
    except ValueError:
        raise DamagedError("bytes were expected") from None


def _integer(reader: Reader, value: Any) -> int:
    try:
        return int(text(row(value, 2)[1]), 16)
    except ValueError:
        raise DamagedError("a number was expected") from None


def _generator(reader: Reader, value: Any) -> Any:
    where = names.device(row(value, 2)[1])
    return torch.Generator(where) if where.type == "cpu" else opaque("Generator", f"<generator on {where}>")


def _object(reader: Reader, value: Any) -> Any:
    _, kind, told = row(value, 3)
    held = reader.pairs(value, 3)
    if any(type(name) is not str for name in held):
        raise DamagedError("names of attributes were expected")
    return opaque(text(kind), text(told), held)


def _function(reader: Reader, value: Any) -> OpaqueFunction:
    _, name, told = row(value, 3)
    return opaque_function(text(name), text(told))


_READERS: dict[str, Callable[[Reader, Any], Any]] = {
    "t": lambda reader, value: tuple(reader.items(value)),
    "l": lambda reader, value: reader.items(value),
    "d": lambda reader, value: reader.pairs(value, 1),
    "s": _slice,
    "e": lambda reader, value: ...,
    "nt": _named_tuple,
    "sz": lambda reader, value: torch.Size([whole(item, -BIGGEST) for item in value[1:]]),
    "f": lambda reader, value: _number(row(value, 2)[1]),
    "c": lambda reader, value: complex(*map(_number, row(value, 3)[1:])),
    "i": _integer,
    "b": _bytes,
    "dt": lambda reader, value: names.named(row(value, 2)[1], names.DTYPES),
    "lay": lambda reader, value: names.named(row(value, 2)[1], names.LAYOUTS),
    "mf": lambda reader, value: names.named(row(value, 2)[1], names.MEMORY_FORMATS),
    "dev": lambda reader, value: names.device(row(value, 2)[1]),
    "gen": _generator,
    "o": _object,
    "fn": _function,
}
