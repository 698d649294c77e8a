"""Sites: which ops an edit or ``save=`` is about.

A site is plain data with a text that says it and from which it can be read back; sites join with
``&``, ``|`` and ``~``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NoReturn

from torchlens.errors import InvalidArgumentError, check_type, short

Outputs = tuple[int, ...]


class Site:
    """A set of ops: base class of all sites."""

    live = True
    """Whether it can be decided while the model runs."""

    def matches(self, op: Any) -> bool:
        """Whether an op, of a trace or being run, belongs to it."""
        raise NotImplementedError

    def outputs(self, op: Any) -> Outputs | None:
        """Which outputs of a matching op are meant; ``None`` if the site does not say."""
        return None

    def parts(self) -> tuple[Site, ...]:
        """The sites it is joined from."""
        return ()

    def __and__(self, other: Site) -> Site:
        return And(self, other)

    def __or__(self, other: Site) -> Site:
        return Or(self, other)

    def __invert__(self) -> Site:
        return Not(self)


def _named(name: str, given: dict[str, Any], *values: Any) -> str:
    texts = [repr(value) for value in values]
    texts += [f"{key}={value!r}" for key, value in given.items() if value is not None]
    return f"{name}({', '.join(texts)})"


def _meets(name: str, pattern: str) -> bool:
    return name == pattern or (("*" in pattern or "?" in pattern) and fnmatchcase(name, pattern))


def _within(address: str, pattern: str) -> bool:
    """Whether an address is the pattern or lies below it."""
    return _meets(address, pattern) or address.startswith(pattern + ".") or _meets(address, pattern + ".*")


@dataclass(frozen=True)
class Label(Site):
    """Ops by label; see :func:`label`."""

    name: str
    passes: tuple[int, ...] | None = None
    output: Outputs | None = None
    live = False

    def matches(self, op: Any) -> bool:
        if self.passes is not None and op.pass_index not in self.passes:
            return False
        names = (op.label, op.layer.label, f"{op.layer.label}:{op.pass_index}")
        return any(_meets(name, self.name) for name in names) or (
            bool(op.address) and op.address == self.name
        )

    def outputs(self, op: Any) -> Outputs | None:
        return self.output

    def __str__(self) -> str:
        return _named("label", {"passes": self.passes, "output": self.output}, self.name)


@dataclass(frozen=True)
class Func(Site):
    """Calls of a function; see :func:`func`."""

    name: str
    output: Outputs | None = None

    def matches(self, op: Any) -> bool:
        return op.kind == "call" and (_meets(op.func_name, self.name) or _meets(op.type, self.name))

    def outputs(self, op: Any) -> Outputs | None:
        return self.output

    def __str__(self) -> str:
        return _named("func", {"output": self.output}, self.name)


@dataclass(frozen=True)
class ModuleOutput(Site):
    """What a module returns; see :func:`module`."""

    address: str
    output: Outputs | None = None
    live = False

    def matches(self, op: Any) -> bool:
        if op.kind != "call":
            return False
        call = op.call
        while call is not None:
            if self.names(call.module.addresses) and returns(call, op):
                return True
            call = call.parent
        return False

    def names(self, addresses: tuple[str, ...] | list[str]) -> bool:
        """Whether a module of these addresses is meant."""
        return any(_meets(address, self.address) for address in addresses)

    def outputs(self, op: Any) -> Outputs | None:
        return self.output

    def __str__(self) -> str:
        return _named("module", {"output": self.output}, self.address)


def returns(call: Any, op: Any) -> bool:
    """Whether a module call returned a tensor that an op made."""
    from torchlens.capture.recording import records_in

    index = op._trace.call_index(op)
    return any(r.source == "op" and r.index == index for _, r in records_in(call._record.output))


@dataclass(frozen=True)
class InModule(Site):
    """Everything that ran inside a module; see :func:`in_module`."""

    address: str

    def matches(self, op: Any) -> bool:
        return op.kind == "call" and any(_meets(a, self.address) for m in op.modules for a in m.addresses)

    def __str__(self) -> str:
        return _named("in_module", {}, self.address)


@dataclass(frozen=True)
class Params(Site):
    """Calls that read parameters; see :func:`params`."""

    address: str = "*"

    def matches(self, op: Any) -> bool:
        return op.kind == "call" and any(_within(a, self.address) for p in op.params for a in p.addresses)

    def __str__(self) -> str:
        return _named("params", {}, self.address)


@dataclass(frozen=True)
class Where(Site):
    """Ops for which a function says so; see :func:`where`."""

    test: Callable[[Any], Any] | None
    name: str
    output: Outputs | None = None

    def matches(self, op: Any) -> bool:
        return self.test is not None and bool(self.test(op))

    def outputs(self, op: Any) -> Outputs | None:
        return self.output

    def __str__(self) -> str:
        return _named("where", {"output": self.output}, self.name)


@dataclass(frozen=True)
class And(Site):
    """Ops of both sites."""

    first: Site
    second: Site

    @property
    def live(self) -> bool:  # type: ignore[override]
        return self.first.live and self.second.live

    def matches(self, op: Any) -> bool:
        return self.first.matches(op) and self.second.matches(op)

    def outputs(self, op: Any) -> Outputs | None:
        found = self.first.outputs(op)
        return found if found is not None else self.second.outputs(op)

    def parts(self) -> tuple[Site, ...]:
        return (self.first, self.second)

    def __str__(self) -> str:
        return f"{_inner(self.first, And)} & {_inner(self.second, And)}"


@dataclass(frozen=True)
class Or(Site):
    """Ops of either site."""

    first: Site
    second: Site

    @property
    def live(self) -> bool:  # type: ignore[override]
        return self.first.live and self.second.live

    def matches(self, op: Any) -> bool:
        return self.first.matches(op) or self.second.matches(op)

    def outputs(self, op: Any) -> Outputs | None:
        return (self.first if self.first.matches(op) else self.second).outputs(op)

    def parts(self) -> tuple[Site, ...]:
        return (self.first, self.second)

    def __str__(self) -> str:
        return f"{_inner(self.first, Or)} | {_inner(self.second, Or)}"


@dataclass(frozen=True)
class Not(Site):
    """Ops outside of a site."""

    inner: Site

    @property
    def live(self) -> bool:  # type: ignore[override]
        return self.inner.live

    def matches(self, op: Any) -> bool:
        return not self.inner.matches(op)

    def parts(self) -> tuple[Site, ...]:
        return (self.inner,)

    def __str__(self) -> str:
        return f"~{_inner(self.inner, Not)}"


def _inner(site: Site, around: type[Site]) -> str:
    joined = isinstance(site, (And, Or)) and not isinstance(site, around)
    return f"({site})" if joined else str(site)


# -- how users write them ----------------------------------------------------------------------


def _outputs(output: int | tuple[int, ...] | None) -> Outputs | None:
    if output is None:
        return None
    chosen = (output,) if isinstance(output, int) and not isinstance(output, bool) else tuple(output)  # type: ignore[arg-type]
    for one in chosen:
        check_type(one, int, argument="output", code="site_output_invalid", wanted="the number of an output")
    return chosen


def _text(value: Any, argument: str) -> str:
    check_type(value, str, argument=argument, code=f"site_{argument}_invalid", wanted="a string")
    return str(value)


def label(name: str, *, passes: Any = None, output: int | tuple[int, ...] | None = None) -> Site:
    """The op or layer of a label, an input by label or address, a buffer by address.

    Parameters
    ----------
    name : str
        ``"relu_1_2"`` means every pass of the layer, ``"relu_1_2:3"`` one; ``*`` and ``?`` are wildcards.
    passes : int or sequence of int, optional
        Only these passes.
    output : int or tuple of int, optional
        Which outputs of an op with several.
    """
    chosen = None if passes is None else (passes,) if isinstance(passes, int) else tuple(passes)
    return Label(_text(name, "name"), chosen, _outputs(output))


def func(name: str, *, output: int | tuple[int, ...] | None = None) -> Site:
    """Every call of a function, by its own name (``add_``) or its plain type (``add``)."""
    return Func(_text(name, "name"), _outputs(output))


def module(address: str, *, output: int | tuple[int, ...] | None = None) -> Site:
    """The ops whose results a module returns, in each of its calls."""
    return ModuleOutput(_text(address, "address"), _outputs(output))


def in_module(address: str) -> Site:
    """Every op that ran inside a module, at any depth."""
    return InModule(_text(address, "address"))


def params(address: str = "*") -> Site:
    """The ops that read parameters at an address or below it; all parameters by default."""
    return Params(_text(address, "address"))


def where(test: Callable[[Any], Any], *, output: int | tuple[int, ...] | None = None) -> Site:
    """The ops for which ``test(op)`` is true.

    While the model runs ``op`` has ``func_name type kind modules module params out shape dtype step``.
    """
    if not callable(test):
        raise InvalidArgumentError(
            f"test={short(test)} cannot be called.",
            code="site_test_invalid",
            argument="test",
            value=test,
            remedy="Pass a function f(op) -> bool.",
        )
    return Where(test, getattr(test, "__qualname__", type(test).__name__), _outputs(output))


_READ: dict[str, Callable[..., Site]] = {
    "label": label,
    "func": func,
    "module": module,
    "in_module": in_module,
    "params": params,
    "where": lambda name, output=None: Where(None, name, _outputs(output)),
}


def parse_site(text: str) -> Site:
    """The site that a record's text says; a ``where`` comes back without its function, matching nothing."""
    try:
        return _from_tree(ast.parse(text, mode="eval").body)
    except (SyntaxError, TypeError, ValueError):
        _unreadable(text)


def _from_tree(node: ast.expr) -> Site:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        first, second = _from_tree(node.left), _from_tree(node.right)
        return first & second if isinstance(node.op, ast.BitAnd) else first | second
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return ~_from_tree(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _READ:
        values = [ast.literal_eval(value) for value in node.args]
        named = {item.arg: ast.literal_eval(item.value) for item in node.keywords if item.arg}
        return _READ[node.func.id](*values, **named)
    raise ValueError(ast.dump(node))


def _unreadable(text: str) -> NoReturn:
    raise InvalidArgumentError(
        f"site={short(text)} is not understood.",
        code="site_text_invalid",
        argument="site",
        value=text,
        remedy="Write it as it is printed, such as \"func('relu') & in_module('layer2')\".",
    )
