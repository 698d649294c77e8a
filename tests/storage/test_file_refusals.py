"""Saving to where one cannot, failing half-way, and loading what is no trace."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.storage import save as saving


@pytest.fixture
def trace() -> tl.Trace:
    return tl.trace(nn.Linear(3, 2), torch.randn(4, 3))


@pytest.mark.parametrize("path", [None, 3, "", "it.pt", "it.tlens/", "missing/it", "file/it", ".", "a\0b"])
def test_paths_that_cannot_be(trace: tl.Trace, path: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it.tlens").mkdir()
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(tl.InvalidArgumentError) as caught:
        trace.save(path)
    assert caught.value.code == "save_path_invalid"
    assert sorted(tmp_path.rglob("*")) == before


def test_values_is_a_flag(trace: tl.Trace, tmp_path: Path) -> None:
    with pytest.raises(tl.InvalidArgumentError) as caught:
        trace.save(tmp_path / "it", values="no")  # type: ignore[arg-type]
    assert caught.value.code == "save_values_invalid"
    assert not list(tmp_path.iterdir())


def test_the_suffix_is_added(trace: tl.Trace, tmp_path: Path) -> None:
    assert trace.save(str(tmp_path / "it")) == tmp_path / "it.tlens"
    assert str(tl.load(tmp_path / "it")) == str(tl.load(str(tmp_path / "it.tlens"))) == str(trace)


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("x")]
)
def test_a_failure_leaves_the_old_file(
    trace: tl.Trace, tmp_path: Path, monkeypatch: Any, error: BaseException
) -> None:
    path = trace.save(tmp_path / "it")
    old = path.read_bytes()

    def fail(*args: Any) -> Any:
        raise error

    monkeypatch.setattr(saving, "write_values", fail)
    wanted = tl.SaveError if isinstance(error, OSError) else type(error)
    with pytest.raises(wanted):
        trace.save(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_crash_leaves_the_old_file(trace: tl.Trace, tmp_path: Path, monkeypatch: Any) -> None:
    path = trace.save(tmp_path / "it")
    old = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *names: os._exit(7))
    child = os.fork()
    if child == 0:
        trace.save(path)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert path.read_bytes() == old


def test_new_files_have_the_usual_permissions(trace: tl.Trace, tmp_path: Path) -> None:
    path, plain = trace.save(tmp_path / "it"), tmp_path / "plain"
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode


def refused(path: Any) -> str:
    with pytest.raises(tl.LoadError) as caught:
        tl.load(path)
    assert caught.value.remedy in str(caught.value)
    return caught.value.code


def test_what_is_no_trace(tmp_path: Path) -> None:
    assert refused(tmp_path / "missing") == "load_file_missing"
    assert refused(tmp_path) == "load_file_missing"
    assert refused("a\0b") == "load_file_missing"
    for name, data in (("empty", b""), ("text", b"hello"), ("cut", b"PK\x03\x04" + b"\0" * 40)):
        (tmp_path / name).write_bytes(data)
        assert refused(tmp_path / name) == "load_not_a_trace"
    torch.save({"a": torch.ones(2)}, tmp_path / "model.pt")
    assert refused(tmp_path / "model.pt") == "load_not_a_trace"
    with pytest.raises(tl.InvalidArgumentError):
        tl.load(5)


# -- hostile files ---------------------------------------------------------------------------------


def members(trace: tl.Trace) -> dict[str, bytes]:
    file = io.BytesIO()
    saving.write(trace, file, values=True)
    with zipfile.ZipFile(file) as held:
        return {name: held.read(name) for name in held.namelist()}


def packed(path: Path, held: list[tuple[str, bytes]], *, compress: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, data in held:
            file.writestr(zipfile.ZipInfo(name), data, compress_type=compress)
    return path


def changed(trace: tl.Trace, path: Path, member: str = "graph.json", **keys: Any) -> Path:
    held = members(trace)
    held[member] = json.dumps({**json.loads(held[member]), **keys}).encode()
    return packed(path, list(held.items()))


def test_newer_formats(trace: tl.Trace, tmp_path: Path) -> None:
    path = tmp_path / "it.tlens"
    changed(trace, path, "header.json", format=9, readable_by=1, colour="red")
    assert str(tl.load(path)) == str(trace)
    changed(trace, path, colour="red", notes=["kept"])
    assert tl.load(path).recording.notes == ["kept"]
    changed(trace, path, "header.json", format=9, readable_by=9)
    assert refused(path) == "load_newer_format"
    changed(trace, path, "header.json", readable_by="9")
    assert refused(path) == "load_damaged"
    changed(trace, path, "header.json", kind="other")
    assert refused(path) == "load_not_a_trace"


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "C:evil", "a\\b", "graph.json"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_of_members(trace: tl.Trace, tmp_path: Path, name: str) -> None:
    path = packed(tmp_path / "it.tlens", [*members(trace).items(), (name, b"{}")])
    assert refused(path) == "load_damaged"


def test_bombs(trace: tl.Trace, tmp_path: Path) -> None:
    held = members(trace)
    for name in ("graph.json", "header.json"):
        bomb = {**held, name: b" " * 30_000_000 + held[name]}
        path = packed(tmp_path / "bomb", list(bomb.items()), compress=zipfile.ZIP_DEFLATED)
        assert path.stat().st_size < 100_000
        assert refused(path) == "load_damaged"


def test_a_size_that_is_a_lie(trace: tl.Trace, tmp_path: Path) -> None:
    path = packed(tmp_path / "it", list(members(trace).items()), compress=zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(b"graph.json"))
    for size in (5, 1_000_000, 0xFFFFFFF0):
        path.write_bytes(data[: at + 24] + size.to_bytes(4, "little") + data[at + 28 :])
        assert refused(path) == "load_damaged"


def test_depth(trace: tl.Trace, tmp_path: Path) -> None:
    path, held = tmp_path / "it", members(trace)
    deep = b"[" * 100_000 + b"]" * 100_000
    packed(path, list({**held, "graph.json": deep}.items()))
    assert refused(path) == "load_damaged"
    nested: Any = 1
    for _ in range(300):
        nested = ["t", nested]
    assert refused(changed(trace, path, output=nested)) == "load_damaged"


TENSOR = [[4, 3], "float32", "cpu", 48, [3, 1], 0, "strided"]


@pytest.mark.parametrize(
    "keys",
    [
        {"calls": []},
        {"calls": {"func": [1]}},
        {"views": [[0, "float32", [1 << 40], [1], 0, 0, "cpu"]]},
        {"views": [[0, "float32", [1 << 62, 1 << 62], [0, 0], 0, 0, "cpu"]]},
        {"views": [[0, "float32", [2], [1], -1, 0, "cpu"]]},
        {"views": [[0, "qint8", [2], [1], 0, 0, "cpu"]]},
        {"views": [[0, "float32", [2], [1], 0, 0, "nowhere"]]},
        {"views": []},
        {"regions": [[0, 0, 1 << 50, 0]]},
        {"regions": [[7, 0, 1, 0]]},
        {"regions": []},
        {"facts": [[[1 << 40] * 70, *TENSOR[1:]]]},
        {"facts": [["4", *TENSOR[1:]]]},
        {"facts": [[TENSOR[0], "nn", *TENSOR[2:]]]},
        {"modules": []},
        {"module_calls": [[0, 0, 0, 0, 1, None, None, False, False]]},
        {"module_calls": [[0, -1, 0, 5, 1, None, None, False, False]]},
        {"module_calls": [[0, -1, 0, 0, 1, ["t", ["r", 99]], None, False, False]]},
        {"functions": []},
        {"functions": [["torch.Tensor.add"]]},
        {"sites": [[0]]},
        {"sites": []},
        {"codes": []},
        {"derived": {"layers": [], "work": [], "branches": []}},
        {
            "derived": {
                "layers": [0],
                "work": [None],
                "branches": [[99, True, None, "if", "", None, [], [], [], []]],
            }
        },
        {"edited": [[0, [1]]]},
        {"failure": {"type": "E", "message": "", "notes": [], "op": 7, "calls": []}},
        {"output": ["t", ["r", 1000]]},
        {"output": ["d", [["l"], 1]]},
        {"output": ["nt", "class", ["a"], 1]},
        {"output": ["s", 1]},
        {"name": 5},
        {"name": "\ud800"},
        {"timing": {"runs": 1, "warmup": 0, "values_kept": True, "clock": "cpu", "durations": [[]]}},
        {"records": None},
        {"contexts": [[9, [], []]]},
    ],
    ids=lambda keys: str(keys)[:40],
)
def test_content_that_makes_no_sense(trace: tl.Trace, tmp_path: Path, keys: dict[str, Any]) -> None:
    assert refused(changed(trace, tmp_path / "it", **keys)) == "load_damaged"


@pytest.mark.parametrize(
    "name",
    ["torch.load", "torch.serialization.load", "torch.hub.load", "os.system", "torch.Tensor.apply_",
     "ops.aten.from_file", "ops.aten.from_file.default", "ops.aten.save", "ops.other.thing", "torch.compile",
     "ops.aten.__class__", "torch.ops.load_library"],
)  # fmt: skip
def test_functions_that_no_file_may_name(trace: tl.Trace, tmp_path: Path, name: str) -> None:
    loaded = tl.load(changed(trace, tmp_path / "it", functions=[[name, "torch", "linear"]]))
    with pytest.raises(tl.InterventionError):
        loaded.fork().do(tl.label("input_1"), tl.zero())
