"""A trace that went through a file says, draws and does what it did before."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from saved_models import CASES

import torchlens as tl
from torchlens.capture.facts import TensorFacts
from torchlens.capture.recording import EditRecord

FIELDS = """
    label type func_name kind step address shapes dtype device bytes is_alias flops macs func_duration
    func_durations saved_for_backward nonfinite branch_test code failed is_orphan pass_index num_passes
""".split()


@pytest.fixture(params=list(itertools.product(CASES, (True, False))), ids=lambda p: f"{p[0]}-{p[1]}")
def pair(request: Any, tmp_path: Path) -> tuple[tl.Trace, tl.Trace, bool, Any]:
    name, values = request.param
    before = CASES[name].make()
    before.save(tmp_path / "it", values=values)
    return before, tl.load(tmp_path / "it"), values, CASES[name].edit


def test_everything_that_a_trace_says_comes_back(pair: Any) -> None:
    before, after, values, edit = pair
    assert str(after) == str(before)
    assert after.summary() == before.summary()
    assert repr(after) == repr(before)
    assert after.totals == before.totals
    assert [layer.label for layer in after.layers] == [layer.label for layer in before.layers]
    assert len(after.ops) == len(before.ops)
    for ours, theirs in zip(after.ops, before.ops):
        for name in FIELDS:
            assert getattr(ours, name) == getattr(theirs, name), (theirs, name)
        assert [_spelled(edge) for edge in ours.inputs] == [_spelled(edge) for edge in theirs.inputs]
        assert [m.address for m in ours.modules] == [m.address for m in theirs.modules]
        assert [p.address for p in ours.params] == [p.address for p in theirs.params]
        assert [_without_memory(f) for f in ours.facts] == [_without_memory(f) for f in theirs.facts]
    assert _branches(after) == _branches(before)
    for name in ("name", "class_name", "fake", "input_text", "timing", "audit", "saved", "finite", "edits"):
        assert getattr(after.recording, name) == getattr(before.recording, name)
    if values:
        _check_values(before, after)
    else:
        assert all(op.out is None or op.out == (None,) * len(op.records) for op in after.ops)
    _check_drawings(before, after)
    if values and edit is not None:
        _check_replay(before, after, edit)


def _spelled(edge: Any) -> Any:
    return edge.parent.step, edge.path, edge.out_index, edge.write


def _without_memory(facts: TensorFacts | None) -> Any:
    return None if facts is None else facts._replace(storage=None)


def _branches(trace: tl.Trace) -> list[Any]:
    return [
        (b.op and b.op.step, b.outcome, b.location, b.kind, b.test, b.holds,
         [op.step for op in b.then_ops], [op.step for op in b.else_ops],
         [_spelled(edge) for edge in b.then_edges], [_spelled(edge) for edge in b.else_edges])
        for b in trace.branches
    ]  # fmt: skip


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal to the bit, in equal containers."""
    if isinstance(a, torch.Tensor):
        alike = isinstance(b, torch.Tensor) and (a.dtype, a.shape, a.device) == (b.dtype, b.shape, b.device)
        return alike and _bits(a) == _bits(b)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and bool(a == b)


def _bits(value: torch.Tensor) -> bytes:
    plain = value.detach().resolve_conj().contiguous().reshape(-1)
    return plain.view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def _check_values(before: tl.Trace, after: tl.Trace) -> None:
    for ours, theirs in zip(after.ops, before.ops):
        assert same(ours.out, theirs.out), theirs
        assert same(ours.args, theirs.args), theirs
        assert same(ours.kwargs, theirs.kwargs), theirs
        if isinstance(theirs.out, torch.Tensor) and theirs.out.is_contiguous():
            assert ours.out.stride() == theirs.out.stride()
    if before.recording.fake:
        assert "not in the file: it has no content" in repr(after.output)
    else:
        assert same(after.output, before.output)
    for part in ("params", "buffers"):
        for ours, theirs in zip(getattr(after, part), getattr(before, part)):
            assert same(ours.value, theirs.value)
    for ours, theirs in zip(after.calls, before.calls):
        assert same(ours.out, theirs.out)
        assert same(ours.inputs, theirs.inputs)


def _check_drawings(before: tl.Trace, after: tl.Trace) -> None:
    for settings in (
        {},
        {"view": "overview"},
        {"view": "branches"},
        {"node_style": "profiling"},
        {"rolled": True},
    ):
        assert _drawn(after, settings) == _drawn(before, settings), settings


def _drawn(trace: tl.Trace, settings: dict[str, Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return trace.draw(**settings).svg
        except tl.TorchLensError as error:
            return str(error)


def _check_replay(before: tl.Trace, after: tl.Trace, edit: Any) -> None:
    plain, loaded = before.fork().do(edit, tl.scale(0.5)), after.fork().do(edit, tl.scale(0.5))
    _check_values(plain, loaded)
    assert _branches(plain) == _branches(loaded)
    assert [op.nonfinite for op in loaded.ops] == [op.nonfinite for op in plain.ops]
    assert len(tl.diff(after, loaded)) == len(tl.diff(before, plain)) > 0


def test_a_loaded_trace_differs_nowhere_and_can_be_saved_again(tmp_path: Path) -> None:
    before = CASES["gpt"].make()
    after = tl.load(before.save(tmp_path / "one"))
    assert len(tl.diff(before, after)) == 0
    again = tl.load(after.save(tmp_path / "two"))
    (tmp_path / "one.tlens").unlink()
    _check_values(before, again)
    assert str(again) == str(before)


def test_equal_traces_make_equal_files(tmp_path: Path) -> None:
    trace = CASES["views"].make()
    one, two = trace.save(tmp_path / "one"), trace.save(tmp_path / "two.tlens")
    assert one.read_bytes() == two.read_bytes()


def test_edits_come_back(tmp_path: Path) -> None:
    fork = CASES["resnet"].make().fork("cut").do(tl.func("relu"), tl.zero())
    after = tl.load(fork.save(tmp_path / "fork"))
    assert after.edits == fork.edits
    assert [op.edit for op in after.ops] == [op.edit for op in fork.ops]
    assert after.name == "cut"
    assert not any(edit.inferred for edit in after.edits)
    with pytest.raises(tl.InterventionError):
        after.fork().do(tl.func("conv2d"), tl.zero())


def test_edits_that_no_op_confirms_are_inferred(tmp_path: Path) -> None:
    fork = CASES["loop"].make().fork()
    fork.recording.edits.append(EditRecord("relu", "zero", "replay", ("relu_9_99",)))
    after = tl.load(fork.save(tmp_path / "fork"))
    assert [edit.inferred for edit in after.edits] == [True]


def test_a_failure_comes_back_under_its_name(tmp_path: Path) -> None:
    before = CASES["failed"].make()
    after = tl.load(before.save(tmp_path / "failed"))
    assert after.failure is not None
    assert before.failure is not None
    assert type(after.failure.exception).__name__ == "RuntimeError"
    assert str(after.failure.exception) == str(before.failure.exception)
    assert after.failure.op == before.failure.op
    assert not after.completed
