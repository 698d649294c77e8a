"""Whatever is done to a file, loading gives a trace that can be looked at, or a LoadError."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import torchlens as tl
from torchlens.storage import save as saving

FUZZ = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.drop = nn.Linear(2, 2), nn.Dropout(0.5)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        y = self.drop(self.inner(x)) + self.shift
        y[:, 0] = 1
        if y.sum() > 0:
            y = y.t()
        return {"y": y, "more": (torch.full((2,), float("inf")), None)}


@lru_cache(maxsize=2)
def content(*, values: bool = True) -> bytes:
    torch.manual_seed(0)
    file = io.BytesIO()
    saving.write(tl.trace(Small(), torch.randn(2, 2)), file, values=values)
    return file.getvalue()


@lru_cache(maxsize=1)
def parts() -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content())) as held:
        return {name: held.read(name) for name in held.namelist()}


@pytest.fixture(scope="module")
def path(tmp_path_factory: Any) -> Path:
    found: Path = tmp_path_factory.mktemp("fuzz") / "it.tlens"
    return found


def look(path: Path, data: bytes) -> None:
    """Load a file; what loads can be printed, and its values are there or are refused."""
    path.write_bytes(data)
    try:
        trace = tl.load(path)
    except tl.LoadError:
        return
    assert type(trace) is tl.Trace
    for op in trace.ops:
        try:
            _ = op.out
        except tl.LoadError:
            continue
        assert op.label in repr(op)


@FUZZ
@given(st.data())
def test_bytes(path: Path, data: st.DataObject) -> None:
    held = bytearray(content())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(held) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "drop", "insert", "swap"]))
        if kind == "flip":
            held[at] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "cut":
            del held[at + 1 :]
        elif kind == "drop":
            del held[at : at + data.draw(st.integers(1, 50))]
            held += b"" if held else b"x"
        elif kind == "insert":
            held[at:at] = data.draw(st.binary(max_size=20))
        else:
            held[at : at + 4] = data.draw(st.binary(min_size=4, max_size=4))
    look(path, bytes(held))


@FUZZ
@given(st.integers(0, 1 << 30), st.integers(1, 255))
def test_bytes_of_the_directory(path: Path, at: int, change: int) -> None:
    held = bytearray(content(values=False))
    start = held.rindex(b"PK\x01\x02", 0, held.rindex(b"header.json"))
    held[start + at % (len(held) - start)] ^= change
    look(path, bytes(held))


@FUZZ
@given(st.binary(max_size=200))
def test_any_bytes(path: Path, data: bytes) -> None:
    look(path, data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 1 << 70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6) | st.sampled_from(["t", "l", "d", "r", "s", "nt", "o", "fn", "sz", "b", "gen"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every part of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in places(item, (*path, key)))]


@lru_cache(maxsize=1)
def graph() -> tuple[Any, list[tuple[Any, ...]]]:
    data = json.loads(parts()["graph.json"])
    return data, places(data)[1:]


@settings(FUZZ, max_examples=300)
@given(st.data())
def test_json(path: Path, data: st.DataObject) -> None:
    original, known = graph()
    changed = copy.deepcopy(original)
    for _ in range(data.draw(st.integers(1, 3))):
        where = data.draw(st.sampled_from(known))
        around = changed
        try:
            for step in where[:-1]:
                around = around[step]
            _change(around, where[-1], data)
        except (LookupError, TypeError):
            continue
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for name, held in {**parts(), "graph.json": json.dumps(changed).encode()}.items():
            target.writestr(name, held)
    look(path, file.getvalue())


def _change(around: Any, key: Any, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["replace", "near", "remove", "double"]))
    if kind == "remove":
        del around[key]
    elif kind == "double":
        around[key] = [around[key], around[key]]
    elif kind == "near" and type(around[key]) is int:
        around[key] += data.draw(st.sampled_from([-1, 1, 2, 1 << 31, 1 << 63]))
    else:
        around[key] = data.draw(JSON)
