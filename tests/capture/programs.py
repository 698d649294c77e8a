"""Random programs of one torch call per instruction, and what is true of them by independent means.

A program works on a row of registers.  Every instruction makes one torch call on registers ``a`` and
``b``; calls that torch refuses are left out.  :class:`Truth` runs the program in plain torch, keeps a
copy of every result, and follows each byte of memory from the calls that wrote it to those that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Instruction(NamedTuple):
    """Name in :data:`CALLS`, two registers and a small number that the call may use."""

    name: str
    a: int
    b: int
    k: int


class Kind(NamedTuple):
    """What a call does: ``run(a, b, k, modules)``, whether it reads, views or writes ``a``."""

    run: Callable[[Tensor, Tensor, int, nn.ModuleDict], Any]
    writes: Callable[[Tensor, int], Any] | None = None
    binary: bool = True
    views: bool = False
    overwrites: bool = False


def _setitem(a: Tensor, index: Any, value: Any) -> None:
    a[index] = value


def _imul(a: Tensor, k: int) -> Tensor:
    a *= k - 2
    return a


def _add_out(a: Tensor, b: Tensor, k: int) -> Tensor:
    if a.shape != b.shape:
        raise ValueError("out= would resize its target")
    return torch.add(b, k, out=a)


def _normed(a: Tensor, norm: Any) -> Tensor:
    return F.batch_norm(a, norm.running_mean, norm.running_var, training=True)


def _first(a: Tensor, k: int) -> Any:
    return k % a.shape[0]


def _stride(a: Tensor, k: int) -> slice:
    return slice(k % 2, None, 2)


def _rows(a: Tensor, k: int) -> list[int]:
    return [k % a.shape[0], 0]


def _index(a: Tensor, k: int) -> Tensor:
    return _INDICES[k % a.shape[0]]


def _everything(a: Tensor, k: int) -> Any:
    return ...


_INDICES = [torch.tensor([position, 0]) for position in range(4)]
PURE: dict[str, Kind] = {
    "add": Kind(lambda a, b, k, m: a + b),
    "mul": Kind(lambda a, b, k, m: torch.mul(a, b)),
    "sub": Kind(lambda a, b, k, m: a.sub(b, alpha=k)),
    "rsub": Kind(lambda a, b, k, m: k - a, binary=False),
    "neg": Kind(lambda a, b, k, m: -a, binary=False),
    "maximum": Kind(lambda a, b, k, m: torch.maximum(a, b)),
    "cat": Kind(lambda a, b, k, m: torch.cat([a, b])),
    "stack": Kind(lambda a, b, k, m: torch.stack((a, b), dim=-1)),
    "sum": Kind(lambda a, b, k, m: a.sum(dim=k % a.dim(), keepdim=True), binary=False),
    "cumsum": Kind(lambda a, b, k, m: a.cumsum(0), binary=False),
    "flip": Kind(lambda a, b, k, m: torch.flip(a, (0,)), binary=False),
    "roll": Kind(lambda a, b, k, m: a.roll(k), binary=False),
    "clone": Kind(lambda a, b, k, m: a.clone(), binary=False),
    "sort": Kind(lambda a, b, k, m: torch.sort(a, dim=0, stable=True), binary=False),
    "take": Kind(lambda a, b, k, m: a[_rows(a, k)], binary=False),
    "matmul": Kind(lambda a, b, k, m: a @ b),
    "relu": Kind(lambda a, b, k, m: F.relu(a), binary=False),
    "repeat": Kind(lambda a, b, k, m: a.repeat(*[2] * a.dim()), binary=False),
    "outer": Kind(lambda a, b, k, m: torch.outer(a, b)),
}  # fmt: skip
VIEWS: dict[str, Kind] = {
    name: Kind(run, binary=False, views=True)
    for name, run in {
        "row": lambda a, b, k, m: a[k % a.shape[0]],
        "slice": lambda a, b, k, m: a[k % 2 :: 2],
        "narrow": lambda a, b, k, m: a.narrow(-1, 0, 1 + k % a.shape[-1]),
        "t": lambda a, b, k, m: a.t(),
        "transpose": lambda a, b, k, m: a.transpose(0, -1),
        "flat": lambda a, b, k, m: a.view(-1),
        "unsqueeze": lambda a, b, k, m: a.unsqueeze(k % 2),
        "expand": lambda a, b, k, m: a.expand(2, *a.shape),
        "diagonal": lambda a, b, k, m: a.diagonal(),
        "unfold": lambda a, b, k, m: a.unfold(0, 2, 1),
        "strided": lambda a, b, k, m: torch.as_strided(a, (2,), (1,), k % 2),
        "chunk": lambda a, b, k, m: a.chunk(2),
        "split": lambda a, b, k, m: torch.split(a, 1),
        "unbind": lambda a, b, k, m: a.unbind(0),
        "detach": lambda a, b, k, m: a.detach(),
        "bytes": lambda a, b, k, m: a.view(torch.int32),
    }.items()
}  # fmt: skip
WRITES: dict[str, Kind] = {
    "add_": Kind(lambda a, b, k, m: a.add_(b), _everything),
    "imul": Kind(lambda a, b, k, m: _imul(a, k), _everything, binary=False),
    "copy_": Kind(lambda a, b, k, m: a.copy_(b), _everything, overwrites=True),
    "fill_": Kind(lambda a, b, k, m: a.fill_(k), _everything, binary=False, overwrites=True),
    "relu_": Kind(lambda a, b, k, m: F.relu(a, inplace=True), _everything, binary=False),
    "set_row": Kind(lambda a, b, k, m: _setitem(a, k % a.shape[0], k), _first, binary=False),
    "set_from": Kind(lambda a, b, k, m: _setitem(a, k % a.shape[0], b), _first),
    "set_taken": Kind(lambda a, b, k, m: _setitem(a, _rows(a, k), b), _rows),
    "set_stride": Kind(lambda a, b, k, m: _setitem(a, _stride(a, k), k), _stride, binary=False),
    "set_last": Kind(lambda a, b, k, m: _setitem(a, (..., -1), k), lambda a, k: (..., -1), binary=False),
    "out": Kind(lambda a, b, k, m: _add_out(a, b, k), _everything, overwrites=True),
    "clamp_": Kind(lambda a, b, k, m: a.clamp_(min=k), _everything, binary=False),
    "foreach_": Kind(lambda a, b, k, m: torch._foreach_add_([a], [b]), _everything),
    "index_fill_": Kind(lambda a, b, k, m: a.index_fill_(0, _index(a, k), k), _rows, binary=False),
    "clamp_max_": Kind(lambda a, b, k, m: a.clamp_max_(k), _everything, binary=False),
}  # fmt: skip
RESHAPES: dict[str, Kind] = {
    name: Kind(run, binary=False, views=True)
    for name, run in {
        "t_": lambda a, b, k, m: a.t_(),
        "unsqueeze_": lambda a, b, k, m: a.unsqueeze_(k % 2),
        "squeeze_": lambda a, b, k, m: a.squeeze_(),
        "transpose_": lambda a, b, k, m: a.transpose_(0, -1),
    }.items()
}  # fmt: skip
FLOATS: dict[str, Kind] = {
    "linear": Kind(lambda a, b, k, m: m["linear"](a), binary=False),
    "norm": Kind(lambda a, b, k, m: _normed(a, m["norm"]), binary=False),
    "mean": Kind(lambda a, b, k, m: m["norm"].running_mean + k, binary=False),
    "weight": Kind(lambda a, b, k, m: torch.addmm(m["linear"].bias, a, m["linear"].weight), binary=False),
    "tanh": Kind(lambda a, b, k, m: a.tanh(), binary=False),
    "softmax": Kind(lambda a, b, k, m: torch.softmax(a, -1), binary=False),
}
CALLS = PURE | VIEWS | WRITES | RESHAPES | FLOATS


def tensors_of(value: Any) -> list[Tensor]:
    """Tensors of a result, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


class Program(nn.Module):
    """Runs instructions over registers, which start as the inputs; results become new registers."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        super().__init__()
        self.instructions = list(instructions)
        self.parts = nn.ModuleDict({"linear": nn.Linear(4, 4), "norm": nn.BatchNorm1d(4)})
        self.truth: Truth | None = None

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        registers = [item * 1 for item in inputs]
        if self.truth is not None:
            for item, register in zip(inputs, registers):
                self.truth.note(Kind(lambda *_: None), [item], [register], None)
        kept = []
        for instruction in self.instructions:
            a = registers[instruction.a % len(registers)]
            b = registers[instruction.b % len(registers)]
            if self.apply_one(registers, instruction, a, b):
                kept.append(instruction)
        self.done = kept
        return registers

    def apply_one(self, registers: list[Tensor], instruction: Instruction, a: Tensor, b: Tensor) -> bool:
        """One instruction; ``False`` if torch refuses it."""
        kind, k = CALLS[instruction.name], instruction.k
        operands = [a, b] if kind.binary else [a]
        before = self.truth.reads(operands, kind) if self.truth is not None else None
        written = kind.writes(a, k) if self.truth is not None and kind.writes and a.dim() else None
        try:
            if a.numel() > 200 or b.numel() > 200 or not a.dim():
                return False
            out = kind.run(a, b, k, self.parts)
        except (RuntimeError, IndexError, ValueError, TypeError):
            return False
        results = tensors_of(out)
        if self.truth is not None:
            self.truth.note(kind, operands, results, before, written)
        registers.extend(r for r in results if not any(r is known for known in registers))
        return True


@dataclass
class Truth:
    """Copies of all results, and for each call the calls whose bytes it surely or possibly used.

    ``surely[i]`` has a bit for each earlier call whose result flows into call ``i`` byte by byte;
    ``possibly[i]`` in addition those that made the objects it was given or touched the same bytes.
    """

    values: list[list[Tensor]] = field(default_factory=list)
    surely: list[int] = field(default_factory=list)
    possibly: list[int] = field(default_factory=list)
    _sure: dict[int, list[int]] = field(default_factory=dict)
    _may: dict[int, list[int]] = field(default_factory=dict)
    _objects: dict[int, int] = field(default_factory=dict)
    _alive: list[Tensor] = field(default_factory=list)

    def reads(self, operands: list[Tensor], kind: Kind) -> tuple[int, int]:
        """Calls that the coming call depends on through its operands, surely and possibly."""
        sure = may = 0
        for position, tensor in enumerate(operands):
            may |= self._objects.get(id(tensor), 0)
            for place in self._bytes(tensor):
                may |= self._row(self._may, tensor)[place]
                if not (position == 0 and kind.overwrites) and not kind.views:
                    sure |= self._row(self._sure, tensor)[place]
        return sure, may

    def note(
        self,
        kind: Kind,
        operands: list[Tensor],
        results: list[Tensor],
        before: tuple[int, int] | None,
        written: Any = None,
    ) -> None:
        """A call that returned ``results``."""
        sure, may = before if before is not None else (0, 0)
        mine = 1 << len(self.values)
        self.values.append([result.detach().clone() for result in results] or [operands[0].detach().clone()])
        self.surely.append(sure)
        self.possibly.append(may)
        self._alive += [*operands, *results]
        if kind.writes is not None:
            target = operands[0]
            row, coarse = self._row(self._sure, target), self._row(self._may, target)
            for place in self._bytes(target, written):
                row[place] = sure | mine
            for place in self._bytes(target):
                coarse[place] |= may | mine
            self._objects[id(target)] = self._objects.get(id(target), 0) | may | mine
        for result in results:
            self._objects[id(result)] = self._objects.get(id(result), 0) | may | mine
            if not kind.views and kind.writes is None:
                row, coarse = self._row(self._sure, result), self._row(self._may, result)
                for place in self._bytes(result):
                    row[place] = sure | mine
                    coarse[place] = may | mine

    @staticmethod
    def _row(table: dict[int, list[int]], tensor: Tensor) -> list[int]:
        storage = tensor.untyped_storage()
        return table.setdefault(storage._cdata, [0] * storage.nbytes())

    @staticmethod
    def _bytes(tensor: Tensor, index: Any = ...) -> set[int]:
        """Positions in its storage of the bytes of a tensor, or of its part at ``index``."""
        size = tensor.element_size()
        places = torch.zeros(tensor.shape, dtype=torch.int64) + tensor.storage_offset()
        for dim, (count, step) in enumerate(zip(tensor.shape, tensor.stride())):
            shape = [1] * tensor.dim()
            shape[dim] = count
            places = places + (torch.arange(count) * step).view(shape)
        return {int(p) * size + i for p in places[index].reshape(-1).tolist() for i in range(size)}
