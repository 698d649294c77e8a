"""Values in files: every dtype and geometry to the bit, each memory once, read when asked for."""

from __future__ import annotations

import json
import zipfile
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn

import torchlens as tl
from torchlens.storage import names

DTYPES = list(names.STORED.values())


def through(function: Any, *inputs: Any, path: Path, **options: Any) -> tuple[tl.Trace, tl.Trace]:
    before = tl.trace(function, inputs, **options)
    return before, tl.load(before.save(path / "it"))


def bits(value: torch.Tensor) -> bytes:
    plain = value.resolve_conj().resolve_neg().contiguous().reshape(-1)
    return plain.view(torch.uint8).numpy().tobytes() if plain.numel() else b""


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_to_the_bit(dtype: torch.dtype, tmp_path: Path) -> None:
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (6, 4 * dtype.itemsize), dtype=torch.uint8)
    value = raw.view(dtype)
    before, after = through(lambda x: x.view(4, 6), value, path=tmp_path)
    assert after["view_1_1"].out.dtype == dtype
    assert bits(after["view_1_1"].out) == bits(before["view_1_1"].out) == raw.numpy().tobytes()


def test_special_numbers(tmp_path: Path) -> None:
    given = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-45])
    _, after = through(lambda x: x * 1, given, path=tmp_path)
    assert bits(after["mul_1_1"].out) == bits(given)
    assert after["mul_1_1"].nonfinite == "mixed"


def test_geometry_comes_back(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> Any:
        wide = x[0].expand(1000, 1000, 6)
        return wide, x.t(), x[:, ::2], x.unfold(1, 3, 1), x[:0], x.to(memory_format=torch.contiguous_format)

    before, after = through(model, torch.randn(4, 6), path=tmp_path)
    for ours, theirs in zip(after.ops, before.ops):
        if theirs.out is not None:
            assert bits(ours.out[:2]) == bits(theirs.out[:2])
            assert ours.out.shape == theirs.out.shape
            assert ours.out.stride() == theirs.out.stride() or 0 in theirs.out.shape
    assert (tmp_path / "it.tlens").stat().st_size < 20_000


def test_conjugated_and_negated_views(tmp_path: Path) -> None:
    given = torch.randn(3, 2, dtype=torch.complex64)
    before, after = through(lambda x: (x.conj(), x.conj().imag, x.conj()[1:]), given, path=tmp_path)
    for ours, theirs in zip(after.outputs, before.outputs):
        assert torch.equal(ours.out, theirs.out)


def test_memory_is_stored_once(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> Any:
        return [x.view(-1), x.t(), x[10:], x.view(100, 10, 10), *x.chunk(10)]

    through(model, torch.randn(100, 100), path=tmp_path)
    assert (tmp_path / "it.tlens").stat().st_size < 60_000


def test_a_small_part_of_a_large_memory_is_stored_alone(tmp_path: Path) -> None:
    big = torch.randn(1000, 1000)
    _, after = through(lambda x: x + 1, big[:, :2], path=tmp_path)
    assert torch.equal(after["input_1"].out, big[:, :2])
    assert (tmp_path / "it.tlens").stat().st_size < 100_000


def test_as_strided_reaches_outside_of_its_argument_after_loading_too(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return (x + 1)[4:].as_strided((2, 2), (1, 1), 0) * 2

    before, after = through(model, torch.randn(8), path=tmp_path)
    plain, loaded = (trace.fork().do(tl.func("mul"), tl.zero()) for trace in (before, after))
    assert torch.equal(plain.output, loaded.output)
    call = after.ops[3].record
    assert call is not None
    again = call.func(after.ops[2].out, *call.args[1:])
    assert torch.equal(again, before.ops[3].out)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_what_cannot_be_stored_says_so(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> Any:
        return x.to_sparse(), torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize(), x + 1

    _, after = through(model, torch.randn(3, 3), path=tmp_path)
    assert after["to_sparse_1_1"].out is None
    assert after["to_sparse_1_1"].lost == "sparse_coo tensors are not stored in files"
    assert "not in the file" in repr(after.output[0])
    assert torch.equal(after.output[2], after["add_1_4"].out)
    fork = after.fork().do(tl.func("add"), tl.zero())
    assert torch.equal(fork.output[2], torch.zeros(3, 3))
    assert torch.equal(fork.output[1], after.output[1])
    with pytest.raises(tl.InterventionError, match="not stored in files"):
        after.fork().do(tl.func("to_sparse"), tl.scale(2.0))


@dataclass
class Answer:
    logits: torch.Tensor
    extra: Any = None


Pair = namedtuple("Pair", ["left", "right"])


def test_containers_of_the_output(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> Any:
        return {"a": [x + 1, (x, None)], 3: Pair(x * 2, {"k": 1.5}), "answer": Answer(x - 1, {"s": "t"})}

    before, after = through(model, torch.randn(2), path=tmp_path)
    out = after.output
    assert list(out) == ["a", 3, "answer"]
    assert torch.equal(out["a"][0], before.output["a"][0])
    assert type(out[3]).__name__ == "Pair"
    assert torch.equal(out[3].left, before.output[3].left)
    assert torch.equal(out["answer"].logits, before.output["answer"].logits)
    assert type(out["answer"]).__name__ == "Answer"
    assert "Answer came back as plain stand-ins" in after.recording.notes[-1]
    fork = after.fork().do(tl.func("sub"), tl.zero())
    assert torch.equal(fork.output["answer"].logits, torch.zeros(2))
    assert torch.equal(fork.output[3].left, out[3].left)


def test_arguments_of_every_kind(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> Any:
        y = x[..., 1:3, None, [0, 1]].to(torch.float64, memory_format=torch.preserve_format)
        y = torch.full((2,), float("-inf"), dtype=torch.float64, device="cpu") + y
        y = y.view(torch.Size([*y.shape[:-2], -1])) * 3 + np.float64(2.5)
        return torch.clamp(y, min=-float("inf")), torch.tensor(1 + 2j), torch.rand(2, generator=gen)

    gen = torch.Generator()
    before, after = through(model, torch.randn(2, 4, 3), path=tmp_path)
    for ours, theirs in zip(after.ops, before.ops):
        if theirs.record is not None:
            assert _spelled(ours.record) == _spelled(theirs.record).replace("np.float64(2.5)", "2.5")
    assert after.draw(show_redundant_args=True).svg == before.draw(show_redundant_args=True).svg


def test_arguments_that_are_only_told_about_cannot_be_replayed(tmp_path: Path) -> None:
    given = np.ones(2, dtype=np.float32)
    before, after = through(lambda x: torch.relu(x) + torch.asarray(given), torch.randn(2), path=tmp_path)
    assert after.draw().svg == before.draw().svg
    call = after.recording.calls[1]
    assert "array([1., 1.]" in repr(call.args)
    after.recording.log[0] = call._replace(args=(*after.recording.calls[0].args, call.args[0]))
    after.recording._calls = None
    with pytest.raises(tl.InterventionError, match="only as text"):
        after.fork().do(tl.label("input_1"), tl.zero())


def _spelled(call: Any) -> str:
    return repr((call.args, call.kwargs)).split("<torch._C.Generator")[0]


def test_functions_that_are_not_torchs_own_cannot_be_replayed(tmp_path: Path) -> None:
    library = torch.library.Library("torchlens_storage_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    twice = torch.ops.torchlens_storage_test.twice

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.relu.default(twice(torch.nn.functional.linear(x, x)))

    before, after = through(model, torch.randn(2, 2), path=tmp_path)
    assert str(after) == str(before)
    assert [op.flops for op in after.ops] == [op.flops for op in before.ops]
    with pytest.raises(tl.InterventionError, match="cannot be replayed"):
        after.fork().do(tl.func("linear"), tl.zero())
    edited = after.fork().do(tl.func("twice"), tl.replace(-torch.ones(2, 2)))
    assert torch.equal(edited.output, torch.zeros(2, 2))


def test_members_are_safetensors(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    before = tl.trace(model, torch.randn(4, 3))
    with zipfile.ZipFile(before.save(tmp_path / "it")) as file:
        file.extract("values-00000.safetensors", tmp_path)
        assert json.loads(file.read("header.json"))["format"] == 1
        assert all(info.compress_type == 0 for info in file.infolist() if info.filename.startswith("values"))
    with safe_open(tmp_path / "values-00000.safetensors", "pt") as held:
        found = [held.get_tensor(name) for name in held.keys()]  # noqa: SIM118
    assert any(torch.equal(one, model.weight) for one in found if one.shape == (2, 3))


def test_values_are_read_when_asked_for(tmp_path: Path) -> None:
    before, after = through(nn.Linear(3, 2), torch.randn(4, 3), path=tmp_path)
    path = tmp_path / "it.tlens"
    value = after["linear_1_1"].out
    assert torch.equal(value, before["linear_1_1"].out)
    value.zero_()
    assert torch.equal(after["linear_1_1"].out, before["linear_1_1"].out)
    path.unlink()
    with pytest.raises(tl.LoadError) as caught:
        _ = after["input_1"].out
    assert caught.value.code == "load_file_changed"
    before.save(path)
    with pytest.raises(tl.LoadError, match="has changed since it was loaded"):
        _ = after["input_1"].out


def test_a_damaged_value_is_told_apart(tmp_path: Path) -> None:
    before = tl.trace(nn.Linear(3, 2), torch.randn(4, 3))
    path = before.save(tmp_path / "it")
    data, needle = bytearray(path.read_bytes()), bits(before["input_1"].out)
    data[data.index(needle)] ^= 1
    path.write_bytes(data)
    after = tl.load(path)
    with pytest.raises(tl.LoadError) as caught:
        _ = after["input_1"].out
    assert caught.value.code == "load_value_damaged"
    assert torch.equal(after.params[0].value, before.params[0].value)
