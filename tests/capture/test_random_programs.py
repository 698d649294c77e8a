"""Random programs: every kept value is what plain torch had, and the graph can be run again."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from programs import CALLS, PURE, RESHAPES, VIEWS, WRITES, Instruction, Program, Truth

import torchlens as tl
from torchlens.trace.op import Op
from torchlens.trace.trace import Trace

SETTINGS = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
INTEGERS = sorted(PURE | VIEWS | WRITES | RESHAPES)


def programs(names: list[str]) -> st.SearchStrategy[list[Instruction]]:
    small = st.integers(0, 7)
    one = st.builds(Instruction, st.sampled_from(names), small, small, st.integers(0, 3))
    return st.lists(one, min_size=1, max_size=25)


def inputs_of(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(16).view(4, 4).to(dtype) - 5, torch.arange(4).to(dtype)


def run_plain(
    instructions: list[Instruction], dtype: torch.dtype, *, gradients: bool = False
) -> tuple[Program, Truth]:
    """The program's feasible instructions and the truth about them."""
    torch.manual_seed(0)
    program = Program(instructions)
    program.truth = truth = Truth()
    program(*(item.requires_grad_(gradients) for item in inputs_of(dtype)))
    program.instructions, program.truth = program.done, None
    return program, truth


def traced(program: Program, dtype: torch.dtype, *, gradients: bool = False, **options: Any) -> Trace:
    torch.manual_seed(0)
    fresh = Program(program.instructions)
    given = tuple(item.requires_grad_(gradients) for item in inputs_of(dtype))
    return tl.trace(fresh, given, audit=True, **options)


def calls_of(trace: Trace) -> list[Op]:
    return [op for op in trace.ops if op.kind == "call"]


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and torch.equal(left.nan_to_num(), right.nan_to_num())
    )


def flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in flat(item)]
    return []


def check_values(trace: Trace, truth: Truth) -> None:
    ops = calls_of(trace)
    assert len(ops) == len(truth.values)
    for op, wanted in zip(ops, truth.values):
        found = flat(op.out)
        assert op.lost is None
        assert len(found) == len(wanted), op
        assert all(map(same, found, wanted)), (op, found, wanted)
        assert [f.shape for f in op.facts if f is not None] == [tuple(w.shape) for w in wanted]


def copied(value: Any, seen: dict[int, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return seen.setdefault(id(value), value.detach().clone())
    if isinstance(value, (tuple, list)):
        return type(value)(copied(item, seen) for item in value)
    return value


def check_replay(trace: Trace) -> None:
    """Every call, made again on what the record says it was given, gives what the record says."""
    for op in calls_of(trace):
        assert op.record is not None
        seen: dict[int, torch.Tensor] = {}
        args, kwargs = copied(op.args, seen), {k: copied(v, seen) for k, v in op.kwargs.items()}
        with torch.no_grad():
            out = op.record.func(*args, **kwargs)
        results = flat(out) or flat(args)[:1]
        assert all(map(same, results, flat(op.out))), (op, results, op.out)


def ancestors(trace: Trace) -> list[int]:
    """Bit mask of the earlier calls that each call depends on by the recorded edges."""
    masks: dict[int, int] = {}
    ops = calls_of(trace)
    number = {op.step: i for i, op in enumerate(ops)}
    for op in ops:
        mask = 0
        for parent in op.parents:
            if parent.step in number:
                mask |= masks[parent.step] | 1 << number[parent.step]
        masks[op.step] = mask
    return [masks[op.step] for op in ops]


@SETTINGS
@given(programs(INTEGERS))
def test_integer_programs_have_right_values_edges_and_replay(instructions: list[Instruction]) -> None:
    program, truth = run_plain(instructions, torch.int64)
    trace = traced(program, torch.int64)
    check_values(trace, truth)
    check_replay(trace)
    assert trace.audit is not None
    assert trace.audit.count == 0
    for op, found, surely, possibly in zip(calls_of(trace), ancestors(trace), truth.surely, truth.possibly):
        assert found & surely == surely, f"{op} misses {bin(surely & ~found)}"
        assert found & ~possibly == 0, f"{op} has {bin(found & ~possibly)} too many"


@SETTINGS
@given(programs(sorted(CALLS)), st.booleans())
def test_float_programs_have_right_values(instructions: list[Instruction], gradients: bool) -> None:
    program, truth = run_plain(instructions, torch.float32, gradients=gradients)
    trace = traced(program, torch.float32, gradients=gradients)
    check_values(trace, truth)
    check_replay(trace)


@settings(SETTINGS, max_examples=40)
@given(programs(INTEGERS))
def test_not_keeping_values_changes_no_edge(instructions: list[Instruction]) -> None:
    program, _ = run_plain(instructions, torch.int64)
    kept, lean = (traced(program, torch.int64, save=save) for save in (True, False))
    assert ancestors(kept) == ancestors(lean)
    assert [op.shapes for op in kept.ops] == [op.shapes for op in lean.ops]
    assert [[p.step for p in op.parents] for op in kept.ops] == [
        [p.step for p in op.parents] for op in lean.ops
    ]


def test_every_instruction_is_feasible_somewhere() -> None:
    done = set()
    for name in CALLS:
        for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
            program, _ = run_plain([Instruction(name, a, b, 1)], torch.float32)
            done |= {instruction.name for instruction in program.done}
    assert done == set(CALLS)
