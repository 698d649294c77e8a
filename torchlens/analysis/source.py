"""Where an instruction stands in the source, and which test its truth value belongs to."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import NamedTuple

from torchlens.capture.callsite import line_of


class Span(NamedTuple):
    """A piece of source: lines from 1, columns in bytes from 0; ``column`` -1 where only lines are known."""

    line: int
    column: int
    end_line: int
    end_column: int

    def holds(self, other: Span) -> bool:
        """Whether ``other`` lies inside."""
        if other.column < 0 or self.column < 0:
            return self.line <= other.line and other.end_line <= self.end_line
        return (self.line, self.column) <= (other.line, other.column) and (
            other.end_line,
            other.end_column,
        ) <= (self.end_line, self.end_column)


class Step(NamedTuple):
    """One level between an operand and its whole test: ``and``, ``or`` or ``not``, and if it is last."""

    kind: str
    is_last: bool


@dataclass(frozen=True, slots=True)
class Test:
    """A test as one operand of it is asked: its kind, its text, and the two arms that it chooses between.

    ``steps`` lead from the operand out to the whole test.
    """

    kind: str
    text: str
    span: Span
    then_arm: tuple[Span, ...]
    else_arm: tuple[Span, ...]
    operand: Span
    steps: tuple[Step, ...] = ()
    chained: bool = False

    def holds(self, outcome: bool) -> bool | None:
        """Whether the whole test holds, if the operand's outcome settles that."""
        for step in self.steps:
            if step.kind == "not":
                outcome = not outcome
            elif outcome == (step.kind == "and") and not step.is_last:
                return None
        return outcome


class Sources:
    """Source files read once each through ``linecache``, so that notebook cells are found too."""

    def __init__(self) -> None:
        self._trees: dict[str, _Tree | None] = {}
        self._spans: dict[int, list[Span | None]] = {}
        self._tests: dict[tuple[int, int], Test | None] = {}

    def span(self, code: CodeType, offset: int) -> Span:
        """Where an instruction stands; exact from Python 3.11 on, its line before."""
        spans = self._exact_spans(code)
        found = spans[offset // 2] if offset // 2 < len(spans) else None
        if found is not None:
            return found
        line = line_of(code, offset)
        return Span(line, -1, line, -1)

    def _exact_spans(self, code: CodeType) -> list[Span | None]:
        if sys.version_info < (3, 11):
            return []
        spans = self._spans.get(id(code))
        if spans is None:
            spans = self._spans[id(code)] = [_exact(*place) for place in code.co_positions()]
        return spans

    def test_at(self, code: CodeType, offset: int) -> Test | None:
        """The test whose truth value the instruction asks for; ``None`` without source or test."""
        key = (id(code), offset)
        if key not in self._tests:
            self._tests[key] = self._find_test(code, offset)
        return self._tests[key]

    def _find_test(self, code: CodeType, offset: int) -> Test | None:
        """The test at an instruction.

        A conditional jump may carry the place of its whole statement; what it asks was then put on the
        stack by the instruction before.
        """
        tree = self._tree(code.co_filename)
        if tree is None:
            return None
        own = self.span(code, offset)
        found = tree.test_at(own)
        spans, before = self._exact_spans(code), offset // 2 - 1
        while before >= 0 and before < len(spans) and spans[before] == own:
            before -= 1
        previous = spans[before] if 0 <= before < len(spans) else None
        return tree.test_at(previous) if found is None and previous is not None else found

    def text_at(self, code: CodeType, offset: int) -> str:
        """The source at an instruction, ``""`` without source."""
        tree = self._tree(code.co_filename)
        return "" if tree is None else tree.text_of(self.span(code, offset))

    def _tree(self, filename: str) -> _Tree | None:
        if filename not in self._trees:
            lines = linecache.getlines(filename)
            try:
                self._trees[filename] = _Tree("".join(lines)) if lines else None
            except (SyntaxError, ValueError):
                self._trees[filename] = None
        return self._trees[filename]


def _exact(line: int | None, end_line: int | None, column: int | None, end_column: int | None) -> Span | None:
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return Span(line, column, end_line, end_column)


def _span_of(node: ast.AST) -> Span:
    return Span(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)  # type: ignore[attr-defined]


class _Tree:
    """The syntax tree of one file with its tests by line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = text.splitlines()
        self._tests: dict[int, list[_Found]] = {}
        for node in ast.walk(ast.parse(text)):
            for found in _tests_of(node):
                span = _span_of(found.test)
                for line in range(span.line, span.end_line + 1):
                    self._tests.setdefault(line, []).append(found)

    def test_at(self, span: Span) -> Test | None:
        """The test that asks for the value of what stands at ``span``, statements before operators."""
        around = [found for found in self._tests.get(span.line, ()) if _span_of(found.test).holds(span)]
        around.sort(key=lambda found: (found.kind in _OPERATORS, _size(_span_of(found.test))))
        for found in around:
            operand, steps = _asked(found.test, span)
            if operand is not None and (span.column < 0 or _span_of(operand) == span):
                return self._made(found, operand, steps)
        return None

    def text_of(self, span: Span) -> str:
        """The source of a span within one line, or of its first line."""
        line = self._lines[span.line - 1] if span.line <= len(self._lines) else ""
        if span.column < 0:
            return line.strip()
        end = span.end_column if span.end_line == span.line else None
        return line.encode()[span.column : end].decode(errors="replace")

    def _made(self, found: _Found, operand: ast.expr, steps: tuple[Step, ...]) -> Test:
        return Test(
            kind=self._kind(found),
            text=ast.get_source_segment(self._text, found.test) or ast.unparse(found.test),
            span=_span_of(found.test),
            then_arm=tuple(map(_span_of, found.then_arm)),
            else_arm=tuple(map(_span_of, found.else_arm)),
            operand=_span_of(operand),
            steps=steps,
            chained=isinstance(operand, ast.Compare) and len(operand.ops) > 1,
        )

    def _kind(self, found: _Found) -> str:
        if found.kind != "if":
            return found.kind
        start = self._lines[found.owner.lineno - 1].encode()[found.owner.col_offset :]  # type: ignore[attr-defined]
        return "elif" if start.startswith(b"elif") else "if"


class _Found(NamedTuple):
    kind: str
    owner: ast.AST
    test: ast.expr
    then_arm: list[ast.AST]
    else_arm: list[ast.AST]


_OPERATORS = ("and", "or", "not")


def _size(span: Span) -> tuple[int, int]:
    return span.end_line - span.line, span.end_column - span.column


def _tests_of(node: ast.AST) -> Iterator[_Found]:
    """The tests that a node makes, each with what runs if it holds and if it does not."""
    if isinstance(node, ast.If):
        yield _Found("if", node, node.test, list(node.body), list(node.orelse))
    elif isinstance(node, ast.While):
        yield _Found("while", node, node.test, list(node.body), list(node.orelse))
    elif isinstance(node, ast.IfExp):
        yield _Found("ternary", node, node.test, [node.body], [node.orelse])
    elif isinstance(node, ast.Assert):
        yield _Found("assert", node, node.test, [], [node.msg] if node.msg else [])
    elif isinstance(node, ast.match_case) and node.guard is not None:
        yield _Found("if", node.guard, node.guard, list(node.body), [])
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        made: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for loop in node.generators:
            for test in loop.ifs:
                yield _Found("comprehension", node, test, made, [])
    elif isinstance(node, ast.BoolOp):
        yield _Found("and" if isinstance(node.op, ast.And) else "or", node, node, [], [])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield _Found("not", node, node, [], [])


def _asked(test: ast.expr, span: Span) -> tuple[ast.expr | None, tuple[Step, ...]]:
    """The operand of a test that stands around ``span``, and the steps from it out to the test.

    Below ``and``, ``or`` and ``not`` the operands are asked for their values; all else is asked whole.
    """
    if isinstance(test, ast.BoolOp):
        kind, parts = "and" if isinstance(test.op, ast.And) else "or", test.values
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        kind, parts = "not", [test.operand]
    else:
        return test, ()
    if span.column < 0:
        return test, ()
    inner = next((part for part in parts if _span_of(part).holds(span)), None)
    if inner is None:
        return None, ()
    operand, steps = _asked(inner, span)
    return operand, (*steps, Step(kind, inner is parts[-1]))
