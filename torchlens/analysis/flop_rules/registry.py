"""The table of rules, what a rule is given, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torchlens.capture.recording import CallRecord, TensorRecord, records_in

if TYPE_CHECKING:
    from torchlens.capture.facts import TensorFacts


class Work(NamedTuple):
    """What a call computes: multiply-adds of its products, and all other operations.

    ``inside`` is what a fused kernel does besides its products and what no count of it includes, so
    that totals compare with those of torch's own counter and with published ones.
    """

    macs: int = 0
    other: int = 0
    inside: int = 0

    @property
    def flops(self) -> int:
        """Floating point operations, a multiply-add being two."""
        return 2 * self.macs + self.other


class Given:
    """A recorded call as rules see it: facts in place of tensors."""

    def __init__(self, call: CallRecord) -> None:
        self.name = call.name
        self._args = call.args
        self._kwargs = call.kwargs
        outs = [record.facts for record in call.outs]
        self.outs: list[TensorFacts] = [fact for fact in outs if fact is not None]

    def value(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by position or name; tensors come as their records."""
        if position < len(self._args):
            return self._args[position]
        return self._kwargs.get(name, default)

    def tensor(self, position: int, *names: str) -> TensorFacts | None:
        """Facts of a tensor argument, or ``None`` if there is none."""
        for name in names:
            found = self.value(position, name)
            if isinstance(found, TensorRecord):
                return found.facts
        return None

    def shape(self, position: int, *names: str) -> tuple[int, ...]:
        """Shape of a tensor argument that must be there."""
        found = self.tensor(position, *names)
        if found is None:
            raise LookupError(names)
        return found.shape

    def tensors(self) -> Iterator[TensorFacts]:
        """Facts of every tensor argument, those in containers too."""
        for _, record in records_in((self._args, self._kwargs)):
            if record.facts is not None:
                yield record.facts

    @property
    def out(self) -> TensorFacts:
        """Facts of the first output."""
        return self.outs[0]

    @property
    def out_size(self) -> int:
        """Elements of the first output."""
        return size(self.out)

    @property
    def in_size(self) -> int:
        """Elements of the first tensor argument."""
        return size(next(self.tensors()))

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments as recorded."""
        return self._args


def ragged(fact: TensorFacts) -> bool:
    """Whether a tensor is nested, so that its shape does not tell its size."""
    return fact.layout == torch.jagged or (fact.layout == torch.strided and fact.strides is None)


def size(fact: TensorFacts) -> int:
    """Number of elements; of a sparse tensor, as if it were dense."""
    return fact.nbytes // fact.dtype.itemsize if ragged(fact) else math.prod(fact.shape)


def stored(fact: TensorFacts) -> int:
    """Number of values that a matrix stores: all of a dense one, those of a sparse one.

    The stored part of a sparse matrix follows from its bytes, with 64-bit indices.
    """
    if fact.layout == torch.strided:
        return size(fact)
    item = fact.dtype.itemsize
    if fact.layout == torch.sparse_coo:
        count, rest = divmod(fact.nbytes, item + 8 * len(fact.shape))
    elif fact.layout in (torch.sparse_csr, torch.sparse_csc):
        lines = fact.shape[-2 if fact.layout == torch.sparse_csr else -1]
        count, rest = divmod(fact.nbytes - 8 * (lines + 1), item + 8)
    else:
        raise LookupError(fact.layout)
    if rest:
        raise LookupError(fact.layout)
    return count


Answer = Work | int
Rule = Callable[[Given], Answer]
RULES: dict[str, Rule] = {}
"""By plain function name, as :func:`torchlens.capture.functions.type_of` spells it."""

SHAPELESS: set[str] = set()
"""Names whose rules only need sizes, and so hold for nested tensors."""


def rule(*names: str, shapeless: bool = False) -> Callable[[Rule], Rule]:
    """Register a rule under function names; a name has one rule."""

    def register(function: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"{name} has a rule already.")
            RULES[name] = function
            if shapeless:
                SHAPELESS.add(name)
        return function

    return register


def from_torch(function: object) -> bool:
    """Whether a function is torch's own, so that its name means what it says."""
    module = getattr(function, "__module__", None)
    if not isinstance(module, str):
        return True  # methods of tensors that are written in C
    if module.startswith("torch._ops."):
        return module.split(".")[2] in ("aten", "prims")
    return module.split(".")[0] == "torch"
