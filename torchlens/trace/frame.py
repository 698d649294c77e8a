"""A trace as a pandas data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlens.errors import CaptureError

if TYPE_CHECKING:
    import pandas

    from torchlens.trace.op import Op
    from torchlens.trace.trace import Trace


def to_frame(trace: Trace) -> pandas.DataFrame:
    """One row per op, indexed by label; unknown quantities are missing, not 0."""
    try:
        import pandas
    except ImportError as error:
        raise CaptureError(
            "pandas is not installed.",
            code="pandas_missing",
            remedy="Install it with: pip install 'torchlens[pandas]'.",
        ) from error
    return pandas.DataFrame([_row(op) for op in trace.ops]).set_index("label")


def _row(op: Op) -> dict[str, Any]:
    call = op.call
    return {
        "label": op.label,
        "layer": op.layer.label,
        "kind": op.kind,
        "type": op.type,
        "func_name": op.func_name,
        "step": op.step,
        "pass_index": op.pass_index,
        "module": call.module.address if call is not None else None,
        "address": op.address or None,
        "shape": op.shape,
        "dtype": str(op.dtype) if op.dtype is not None else None,
        "device": str(op.device) if op.device is not None else None,
        "bytes": _plain(op.bytes),
        "func_duration": None if op.func_duration is None else float(op.func_duration),
        "flops": _plain(op.flops),
        "macs": _plain(op.macs),
        "saved_for_backward": _plain(op.saved_for_backward),
        "nonfinite": op.nonfinite,
        "params": [param.address for param in op.params],
        "parents": [parent.label for parent in op.parents],
        "code": str(op.code) if op.code is not None else None,
    }


def _plain(value: int | None) -> int | None:
    return None if value is None else int(value)
