"""What kind of call a torch function is: its name, whether it writes, whether it is an op at all."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812

from torchlens._torch_compat import without_function_override
from torchlens.capture.context import draws_of, is_cast
from torchlens.capture.writers import Writer, may_write_unseen, writer_of

METADATA_PROPERTIES = frozenset(
    [
        "shape",
        "dtype",
        "device",
        "layout",
        "requires_grad",
        "grad_fn",
        "is_leaf",
        "ndim",
        "names",
        "nbytes",
        "itemsize",
        "output_nr",
        "_version",
        "is_cuda",
        "is_cpu",
        "is_xpu",
        "is_mps",
        "is_meta",
        "is_sparse",
        "is_sparse_csr",
        "is_quantized",
        "is_nested",
        "is_mkldnn",
        "is_vulkan",
        "is_ipu",
        "is_xla",
        "is_maia",
        "is_mtia",
        "is_ort",
        "retains_grad",
        "volatile",
        "_cdata",
        "_backward_hooks",
        "grad_dtype",
        "_post_accumulate_grad_hooks",
        "__cuda_array_interface__",
        "__class__",
        "is_shared",
    ]
)
METADATA_METHODS = frozenset(
    [
        "size",
        "dim",
        "ndimension",
        "numel",
        "nelement",
        "stride",
        "storage_offset",
        "data_ptr",
        "element_size",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "is_contiguous",
        "is_pinned",
        "is_inference",
        "is_conj",
        "is_neg",
        "is_set_to",
        "is_same_size",
        "is_coalesced",
        "get_device",
        "type_as_string",
        "dim_order",
        "has_names",
        "__len__",
        "__hash__",
        "__repr__",
        "__format__",
        "__dir__",
        "storage",
        "untyped_storage",
        "_typed_storage",
        "_is_view",
        "register_hook",
        "register_post_accumulate_grad_hook",
        "__reduce_ex__",
        "__deepcopy__",
        "__array_priority__",
        "qscheme",
        "q_scale",
        "q_zero_point",
        "sparse_dim",
        "dense_dim",
        "_nnz",
        "result_type",
        "can_cast",
        "promote_types",
        "__setstate__",
        "__dlpack_device__",
        "is_tensor",
        "is_storage",
        "__torch_dispatch__",
        "_is_zerotensor",
        "is_distributed",
        "_has_symbolic_sizes_strides",
        "retain_grad",
        "broadcast_shapes",
    ]
)
TRANSPARENT = frozenset(
    ["data", "requires_grad_", "as_subclass", "grad", "_base", "__set__", "__delete__", "grad_", "dict"]
)
"""Calls that hand on a tensor or a flag of it and compute nothing: the same tensor, not an op."""

EXPOSING = frozenset(
    ["numpy", "__array__", "__dlpack__", "storage", "untyped_storage", "_typed_storage", "share_memory_"]
)
"""Calls that hand a tensor's memory to code whose writes cannot be seen."""

LEAVING = EXPOSING | {"data_ptr", "tolist", "item"}
"""Calls by which content goes where no call is seen."""

OPENED: dict[Any, Any] = {
    F.multi_head_attention_forward: without_function_override(F.multi_head_attention_forward)
}
"""Functions whose inside users want to see, with a copy that shows it to the recorder."""


class Plan:
    """How the recorder treats one function; made once per function."""

    __slots__ = (
        "cast",
        "contextual",
        "draws",
        "exposes",
        "metadata",
        "name",
        "opened",
        "simple",
        "special",
        "transparent",
        "watched",
        "writer",
    )

    def __init__(self, func: Any) -> None:
        self.name = name_of(func)
        getter = getattr(func, "__name__", "") in ("__get__", "__set__", "__delete__")
        self.transparent = (self.name in TRANSPARENT) and (
            getter or self.name in ("requires_grad_", "as_subclass")
        )
        self.metadata = self.name in (METADATA_PROPERTIES if getter else METADATA_METHODS)
        self.opened = OPENED.get(func)
        self.writer: Writer | None = None if self.metadata else writer_of(func, self.name)
        self.watched = not self.metadata and may_write_unseen(func)
        self.special = self.metadata or self.transparent or self.opened is not None
        self.draws = None if self.special else draws_of(self.name)
        self.exposes = self.name in LEAVING
        self.contextual = not self.special and (self.exposes or self.draws is not None or is_cast(self.name))
        self.special = self.special or self.contextual
        self.cast = self.contextual and self.draws is None and not self.exposes
        self.simple = self.writer is None and not self.watched and (self.cast or not self.special)

    @classmethod
    def opaque(cls, name: str) -> Plan:
        """Plan of a whole module call that is recorded as one op."""
        plan = cls.__new__(cls)
        plan.name, plan.transparent, plan.metadata, plan.special = name, False, False, False
        plan.opened, plan.writer, plan.watched = None, None, False
        plan.draws, plan.contextual, plan.exposes = None, False, False
        plan.cast, plan.simple = False, False
        return plan


def name_of(func: Any) -> str:
    """Plain Python name of a torch function; of a property, the name of the property."""
    name = getattr(func, "__name__", None)
    if name in ("__get__", "__set__", "__delete__"):
        owner = getattr(func, "__self__", None)
        name = getattr(owner, "__name__", None) or getattr(
            getattr(owner, "fget", None), "__name__", "property"
        )
    if isinstance(func, torch._ops.OpOverload):
        name = func._schema.name.split("::")[-1]
    return str(name) if name else type(func).__name__


_SPELLINGS = {
    "truediv": "div", "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub",
    "matmul": "matmul", "floor_divide": "floordiv", "remainder": "mod", "concat": "cat",
    "concatenate": "cat", "absolute": "abs", "negative": "neg", "invert": "bitwise_not",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "greater": "gt", "less": "lt",
    "greater_equal": "ge", "less_equal": "le", "not_equal": "ne", "lshift": "lshift", "rshift": "rshift",
}  # fmt: skip
_REFLECTED = frozenset(
    [
        "radd",
        "rsub",
        "rmul",
        "rdiv",
        "rtruediv",
        "rfloordiv",
        "rmod",
        "rpow",
        "rmatmul",
        "rand",
        "ror",
        "rxor",
        "rlshift",
        "rrshift",
    ]
)
_INPLACE = frozenset(
    [
        "iadd",
        "isub",
        "imul",
        "idiv",
        "itruediv",
        "ifloordiv",
        "imod",
        "ipow",
        "imatmul",
        "iand",
        "ior",
        "ixor",
        "ilshift",
        "irshift",
    ]
)


def type_of(name: str) -> str:
    """The name people say: ``add`` for ``__radd__``, ``add_`` and ``__iadd__``."""
    dunder = name.startswith("__") and name.endswith("__") and len(name) > 4
    plain = name.strip("_") or name
    if dunder and plain in (_REFLECTED | _INPLACE):
        plain = plain[1:]
    for prefix in ("linalg_", "fft_", "special_"):
        if plain.startswith(prefix) and len(plain) > len(prefix):
            plain = plain[len(prefix) :]
    return _SPELLINGS.get(plain, plain)
