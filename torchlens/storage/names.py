"""Torch's dtypes, layouts and memory formats by name."""

from __future__ import annotations

from typing import Any

import torch

from torchlens.storage.checks import DamagedError, text


def _all(kind: type) -> dict[str, Any]:
    return {str(value).removeprefix("torch."): value for value in vars(torch).values() if type(value) is kind}


DTYPES: dict[str, torch.dtype] = _all(torch.dtype)
LAYOUTS: dict[str, torch.layout] = _all(torch.layout)
MEMORY_FORMATS: dict[str, torch.memory_format] = _all(torch.memory_format)

SAFETENSORS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
"""Dtypes under the names that safetensors has for them; other dtypes are stored as plain bytes."""

_PLAIN = (*SAFETENSORS, "complex32", "complex64", "complex128", "float8_e4m3fnuz", "float8_e5m2fnuz",
          "float8_e8m0fnu")  # fmt: skip
STORED: dict[str, torch.dtype] = {name: DTYPES[name] for name in _PLAIN if name in DTYPES}
"""Dtypes whose values can be stored: those whose elements are whole bytes and nothing more."""


def name_of(value: Any) -> str:
    """``"float32"`` for ``torch.float32``, likewise for layouts and memory formats."""
    return str(value).removeprefix("torch.")


def named(value: Any, among: dict[str, Any]) -> Any:
    """The inverse."""
    found = among.get(text(value))
    if found is None:
        raise DamagedError("the name of a dtype or layout was expected")
    return found


def device(value: Any) -> torch.device:
    """A device by its name; it need not exist here."""
    try:
        return torch.device(text(value))
    except RuntimeError:
        raise DamagedError("the name of a device was expected") from None
