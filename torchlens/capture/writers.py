"""Which arguments a call is going to write, known before it runs.

PyTorch marks writers by name (trailing ``_``, in-place operators), by keyword (``out=``,
``inplace=True``) and by schema; a few write without any mark and stand in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
WHOLE = object()
"""Index of a write that may touch all of its target."""

GEOMETRY = object()
"""Index of a call that changes sizes, strides or memory of its target and no element."""


class Target(NamedTuple):
    """A tensor about to be written and the index of the part (``WHOLE`` unless indexed)."""

    tensor: torch.Tensor
    index: Any = WHOLE


Writer = Callable[[tuple[Any, ...], dict[str, Any]], Iterator[Target]]

INPLACE_OPERATORS = frozenset(
    f"__i{name}__"
    for name in [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
        "matmul",
        "div",
    ]
)
NOT_WRITING = frozenset(
    [
        "requires_grad_",
        "detach_",
        "share_memory_",
        "rename_",
        "retain_grad_",
        "coalesce_",
        "_coalesced_",
        "swap_tensors_",
    ]
)
"""Names with a trailing underscore that leave every element as it is."""

RESHAPING = frozenset(
    [
        "t_",
        "transpose_",
        "swapaxes_",
        "swapdims_",
        "squeeze_",
        "unsqueeze_",
        "as_strided_",
        "set_",
        "resize_",
        "resize_as_",
    ]
)
"""Methods after which the same object has another shape or other memory."""


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, *names: str) -> Any:
    """The argument at a position or under one of its names, ``None`` if not given."""
    if position < len(args):
        return args[position]
    return next((kwargs[name] for name in names if name in kwargs), None)


def _targets(*values: Any) -> Iterator[Target]:
    for value in values:
        for tensor in _tensors(value):
            yield Target(tensor)


def first_argument(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Target]:
    """Writer of methods with a trailing underscore and of ``inplace=True``."""
    return _targets(argument(args, kwargs, 0, "input", "self", "tensor", "tensors"))


def geometry(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Target]:
    """Writer of methods that change the object and not its elements."""
    yield Target(args[0], GEOMETRY)


def every_list(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Target]:
    """Writer of fused optimizer steps, which update all the lists they are given."""
    return _targets(*(value for value in args if isinstance(value, (tuple, list))))


def set_item(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Target]:
    """Writer of ``tensor[index] = value``."""
    yield Target(args[0], args[1])


def _statistics(mean: int, training: int, *, keyword: str = "training") -> Writer:
    """Writer of normalisations, which move their running statistics in training and bump no counter."""

    def write(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Target]:
        if argument(args, kwargs, training, keyword, "train"):
            yield from _targets(argument(args, kwargs, mean, "running_mean"))
            yield from _targets(argument(args, kwargs, mean + 1, "running_var"))

    return write


def _instance_statistics(mean: int) -> Writer:
    def write(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Target]:
        if argument(args, kwargs, 5, "use_input_stats") is not False:
            yield from _targets(argument(args, kwargs, mean, "running_mean"))
            yield from _targets(argument(args, kwargs, mean + 1, "running_var"))

    return write


def _renormalised_table(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Target]:
    """Writer of embeddings with ``max_norm``, which shrink rows of their table first."""
    if argument(args, kwargs, 3, "max_norm") is not None:
        yield from _targets(argument(args, kwargs, 1, "weight"))


def _at(position: int, *names: str) -> Writer:
    return lambda args, kwargs: _targets(argument(args, kwargs, position, *names))


def _from(position: int) -> Writer:
    return lambda args, kwargs: _targets(*args[position:], *kwargs.values())


UNMARKED: dict[str, Writer] = {
    "fused_moving_avg_obs_fake_quant": _from(3),
    "_fused_moving_avg_obs_fq_helper": _from(3),
    "rrelu_with_noise": _at(1, "noise"),
    "native_batch_norm": _statistics(3, 5),
    "cudnn_batch_norm": _statistics(3, 5),
    "miopen_batch_norm": _statistics(3, 5),
    "embedding": _renormalised_table,
    "embedding_bag": _renormalised_table,
}
"""Functions that write an argument without any mark, by name."""

COLLECTIVES: dict[str, Writer] = {
    **{
        name: _at(0, "tensor", "tensor_list", "output", "output_tensor", "output_list", "output_tensor_list")
        for name in [
            "all_reduce",
            "broadcast",
            "reduce",
            "all_gather",
            "all_gather_into_tensor",
            "reduce_scatter",
            "scatter",
            "recv",
            "irecv",
            "reduce_scatter_tensor",
            "all_to_all",
            "all_to_all_single",
            "all_gather_coalesced",
            "all_reduce_coalesced",
        ]
    },
    "gather": _at(1, "gather_list"),
}
"""Functions of ``torch.distributed`` that fill one of their arguments and return no tensor."""


def writer_of(func: Any, name: str) -> Writer | None:
    """How a function writes whatever its keywords are, or ``None``."""
    if name == "__setitem__":
        return set_item
    if name in RESHAPING:
        return geometry
    if name in INPLACE_OPERATORS:
        return first_argument
    module = getattr(func, "__module__", None) or ""
    if name in ("batch_norm", "instance_norm"):
        mean = 1 if module == "torch.nn.functional" else 3
        return _statistics(mean, 5) if name == "batch_norm" else _instance_statistics(mean)
    if module.startswith("torch.distributed") and name in COLLECTIVES:
        return COLLECTIVES[name]
    if name in UNMARKED:
        return UNMARKED[name]
    schemas = _schemas(func)
    if schemas:
        return _schema_writer(schemas)
    if name.endswith("_") and not name.endswith("__") and name not in NOT_WRITING:
        return every_list if name.startswith("_fused_") else first_argument
    return None


def keyword_targets(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Target]:
    """What ``out=`` and ``inplace=True`` announce."""
    if kwargs.get("out") is not None:
        yield from _targets(kwargs["out"])
    if kwargs.get("inplace") is True:
        yield from first_argument(args, kwargs)


def _schemas(func: Any) -> list[Any]:
    if isinstance(func, torch._ops.OpOverload):
        return [func._schema]
    if isinstance(func, torch._ops.OpOverloadPacket):
        return [getattr(func, name)._schema for name in func.overloads()]
    return []


def _schema_writer(schemas: list[Any]) -> Writer | None:
    """Writer from the alias marks of an operator's schemas (a packet writes if one overload does)."""
    written = {
        (position, item.name)
        for schema in schemas
        for position, item in enumerate(schema.arguments)
        if item.alias_info is not None and item.alias_info.is_write
    }
    if not written:
        return None
    pairs = sorted(written)
    return lambda args, kwargs: _targets(*(argument(args, kwargs, place, name) for place, name in pairs))


def may_write_unseen(func: Any) -> bool:
    """Whether a function is foreign to torch, so that only version counters tell what it wrote."""
    if isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return getattr(func, "namespace", None) not in ("aten", "prims") and not str(func).startswith("aten.")
    module = getattr(func, "__module__", None)
    return isinstance(module, str) and module.split(".", 1)[0] != "torch"
