"""Branches on tensors: kind, outcome, place, and what ran in which arm."""

# ruff: noqa: RET505  (the branches are what is tested)
from __future__ import annotations

import linecache
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import torchlens as tl
from torchlens.analysis.branches import branches, entries, reads

exact = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="columns of instructions are known from 3.11 on"
)
ONE = torch.ones(3)


def names(ops):
    return [op.type for op in ops]


def of(function, *args):
    return branches(tl.trace(function, args or (ONE,)))


def line_with(text):
    """The line of this file that ends with a marker."""
    lines = Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


@pytest.mark.parametrize("sign", [1, -1])
def test_if_and_else(sign):
    def model(x):
        if x.sum() > 0:  # here
            x = torch.sin(x)
            x = x + 1
        else:
            x = torch.cos(x)
        return x * 2

    (branch,) = of(model, sign * ONE)
    assert (branch.kind, branch.outcome, branch.holds) == ("if", sign > 0, sign > 0)
    assert branch.test == "x.sum() > 0"
    assert branch.op.type == "gt"
    assert branch.location.file == __file__
    assert branch.location.line == line_with("here")
    assert names(branch.then_ops) == (["sin", "add"] if sign > 0 else [])
    assert names(branch.else_ops) == (["cos"] if sign < 0 else [])


def test_the_edge_into_an_arm_is_told():
    def model(x):
        y = x * 2
        if x.sum() > 0:
            z = torch.sin(y)
            return z + y
        return y

    trace = tl.trace(model, ONE)
    found = branches(trace)
    (edge,) = found[0].then_edges
    assert (edge.parent.type, edge.child.type) == ("mul", "sin")
    assert entries(found) == {edge: (found[0], True)}


@pytest.mark.parametrize(("x", "expected"), [(1, ["if"]), (0, ["if", "elif"]), (-1, ["if", "elif"])])
def test_elif(x, expected):
    def model(x):
        if x.sum() > 0:
            return torch.sin(x)
        elif x.sum() == 0:
            return torch.cos(x)
        else:
            return torch.tan(x)

    found = of(model, x * ONE)
    assert [b.kind for b in found] == expected
    ran = {1: "sin", 0: "cos", -1: "tan"}[x]
    assert (names(found[-1].then_ops), names(found[-1].else_ops)) == (([ran], []) if x >= 0 else ([], [ran]))
    if x <= 0:  # what runs in the elif is in the else arm of the if
        assert names(found[0].else_ops) == ["sum", "eq", ran]


def test_each_test_of_a_while_loop():
    def model(x):
        while x.norm() > 1:
            x = x * 0.5
        return x + 1

    found = of(model, torch.tensor([6.0]))
    assert [(b.kind, b.outcome) for b in found] == [("while", True)] * 3 + [("while", False)]
    assert [names(b.then_ops) for b in found] == [["mul"]] * 3 + [[]]
    assert len({b.op for b in found}) == 4


@exact
@pytest.mark.parametrize("sign", [1, -1])
def test_ternary(sign):
    def model(x):
        return torch.sin(x) if x.sum() > 0 else torch.cos(x)

    (branch,) = of(model, sign * ONE)
    assert branch.kind == "ternary"
    assert (names(branch.then_ops), names(branch.else_ops)) == ((["sin"], []) if sign > 0 else ([], ["cos"]))


def compiled(text, name):
    """A function ``model`` from text that ``linecache`` knows, as notebooks have it."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"torch": torch}
    exec(compile(text, name, "exec"), scope)
    return scope["model"]


@pytest.mark.parametrize("test", ["x.sum() > 0", "(x > 0).all()"])
def test_assert(test):
    text = f"def model(x):\n    assert {test}, 'not positive'\n    return x + 1\n"
    (branch,) = of(compiled(text, f"<assert {test}>"))
    assert (branch.kind, branch.outcome, branch.then_ops, branch.else_ops) == ("assert", True, (), ())


@exact
def test_operands_of_and():
    def model(x):
        if x.sum() > 0 and x.prod() > 0:
            x = torch.sin(x)
        return x

    first, last = of(model)
    assert (first.kind, first.holds, first.then_ops) == ("and", None, ())
    assert (last.kind, last.holds, names(last.then_ops)) == ("if", True, ["sin"])
    (only,) = of(model, -ONE)
    assert (only.kind, only.outcome, only.holds) == ("if", False, False)


@exact
def test_operands_of_or_without_ops_between():
    def model(a, b):
        if a or b:
            return torch.sin(b)
        return b

    no, yes = torch.tensor(False), torch.tensor(True)
    first, last = of(model, no, yes)
    assert (first.kind, first.holds, first.then_ops) == ("or", None, ())
    assert (last.kind, last.holds, names(last.then_ops)) == ("if", True, ["sin"])
    (only,) = of(model, yes, no)
    assert (only.kind, only.holds, names(only.then_ops)) == ("if", True, ["sin"])
    assert only.op.kind == "input"


@exact
def test_and_outside_of_a_test():
    def model(x):
        flag = (x.sum() > 0) and (x.sum() < 9)
        return x + flag

    (branch,) = of(model)
    assert branch.kind == "and"


SPELLINGS = {
    "if": "if {}:\n        x = x.sin()",
    "elif": "if x is None:\n        pass\n    elif {}:\n        x = x.sin()",
    "ternary": "x = x.sin() if {} else x",
    "while": "while {}:\n        x = x.sin() - 9",
    "comprehension": "x = torch.stack([row.sin() for row in (x, x.abs() + 1) if {}])",
}


@exact
@pytest.mark.parametrize("operand", ["x.sum() > 0", "(x > 0).all()", "flag", "bool(flag)", "not ~flag"])
@pytest.mark.parametrize("kind", SPELLINGS)
def test_every_kind_with_every_spelling_of_a_test(kind, operand):
    text = f"def model(x, flag):\n    {SPELLINGS[kind].format(operand)}\n    return x\n"
    if kind == "while" and "flag" in operand:
        text = text.replace("- 9", "- 9; flag = flag & False")
    found = of(compiled(text, f"<{kind} {operand}>"), ONE, torch.tensor(True))
    assert {b.kind for b in found} == {kind}
    assert found[0].holds
    assert names(found[0].then_ops)[0] == "sin"


@exact
def test_not_turns_the_outcome():
    def model(x):
        if not (x.sum() > 0):
            return torch.sin(x)
        else:
            return torch.cos(x)

    (branch,) = of(model)
    assert (branch.kind, branch.outcome, branch.holds) == ("if", True, False)
    assert branch.test.startswith("not ")
    assert names(branch.else_ops) == ["cos"]

    def plain(x):
        flag = not x.sum() > 0
        return x + flag

    assert [b.kind for b in of(plain)] == ["not"]


@exact
def test_a_flag_beside_a_tensor():
    def model(x, flag):
        if flag and x.sum() > 0:
            return torch.sin(x)
        return x

    (branch,) = of(model, ONE, True)
    assert (branch.kind, branch.holds, names(branch.then_ops)) == ("if", True, ["sin"])


@exact
def test_chained_comparison():
    def model(x):
        if 0 < x.sum() < 9:
            return torch.sin(x)
        return x

    first, last = of(model)
    assert (first.op.type, last.op.type) == ("gt", "lt")
    assert (names(first.then_ops), names(last.then_ops)) == ([], ["sin"])


@exact
def test_comprehension_filters():
    def model(x):
        return torch.stack([torch.sin(row) for row in x if row.sum() > 0])

    found = of(model, torch.tensor([[1.0], [-1.0], [2.0]]))
    assert [(b.kind, b.outcome) for b in found] == [("comprehension", v) for v in (True, False, True)]
    assert [names(b.then_ops) for b in found] == [["sin"], [], ["sin"]]


def test_nested_branches_hold_each_others_ops():
    def model(x):
        if x.sum() > 0:
            x = torch.sin(x)
            if x.sum() > 100:
                x = torch.cos(x)
            else:
                x = torch.tan(x)
            x = x + 1
        return x * 2

    outer, inner = of(model)
    assert names(outer.then_ops) == ["sin", "sum", "gt", "tan", "add"]
    assert names(inner.else_ops) == ["tan"]


def test_inside_functions_and_modules():
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.yes, self.no = nn.Linear(3, 3), nn.Linear(3, 3)

        def choose(self, x):
            if x.sum() > 0:
                return self.yes(x)
            else:
                return self.no(x)

        def forward(self, x):
            return torch.relu(self.choose(x))

    trace = tl.trace(nn.Sequential(Gate()), ONE)
    (branch,) = branches(trace)
    assert [op.call.module.address for op in branch.then_ops] == ["0.yes"]


def test_a_function_called_again_starts_anew():
    def step(x):
        if x.sum() > 0:
            x = torch.sin(x)
        return x

    def model(x):
        for _ in range(3):
            x = step(x)
        return x

    assert [names(b.then_ops) for b in of(model)] == [["sin"]] * 3


def test_a_function_called_elsewhere_is_another_activation():
    def step(flag, x):
        if flag:
            x = torch.sin(x)
        return x

    def model(flag, x):
        x = step(flag, x)
        return step(flag, x)

    assert [names(b.then_ops) for b in of(model, torch.tensor(True), ONE)] == [["sin"]] * 2


def test_a_body_on_several_lines_with_loops():
    def model(x):
        if x.sum() > 0:
            for _ in range(3):
                x = torch.sin(
                    x,
                )
        return x.cos()

    assert names(of(model)[0].then_ops) == ["sin"] * 3


def test_notebook_cells_are_read_through_linecache():
    text = "def model(x):\n    if x.sum() > 0:\n        x = x.sin()\n    return x\n"
    (branch,) = of(compiled(text, "<cell 7>"))
    assert (branch.kind, branch.test, str(branch.location)) == ("if", "x.sum() > 0", "<cell 7>:2")
    assert names(branch.then_ops) == ["sin"]


def test_without_source_the_test_is_unknown():
    scope = {}
    exec("def model(x):\n    if x.sum() > 0:\n        x = x.sin()\n    return x\n", scope)
    (branch,) = of(scope["model"])
    assert (branch.kind, branch.test, branch.outcome, branch.op.type) == ("unknown", "", True, "gt")
    assert branch.then_ops == ()


@exact
def test_a_truth_value_that_decides_nothing_is_unknown():
    def model(x):
        flag = bool(x.sum() > 0)
        return x + flag

    (branch,) = of(model)
    assert (branch.kind, branch.test) == ("unknown", "bool(x.sum() > 0)")


def test_values_that_leave_the_graph():
    def model(x):
        a = x.sum().item()
        b = float(x.prod())
        c = x.tolist()
        return x * (a + b + len(c))

    trace = tl.trace(model, ONE)
    found = trace.reads
    assert found == reads(trace)
    assert [(r.kind, r.outcome, r.op.type) for r in found] == [
        ("item", 3.0, "sum"),
        ("__float__", 1.0, "prod"),
        ("tolist", None, "input"),
    ]
    assert all(r.location.file == __file__ for r in found)
    assert branches(trace) == []


def test_ops_know_that_they_were_tested():
    trace = tl.trace(lambda x: x + 1 if x.sum() > 0 else x, ONE)
    assert {op.type: op.branch_test for op in trace.ops if op.kind == "call"} == {
        "sum": None,
        "gt": True,
        "add": None,
    }
