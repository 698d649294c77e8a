"""What autograd saved for the backward pass, read from the graph after the run.

The user's forward is never hooked: saving hooks would switch off torch's check for tensors that are
changed after they were saved.  The nodes that each call added are read once the forward is over.
"""

from __future__ import annotations

from typing import Any

import torch

from torchlens._torch_compat import storage_key
from torchlens.capture.recording import HeldNode, Recording

_FIELDS: dict[type, tuple[str, ...]] = {}


def saved_bytes(recording: Recording) -> dict[int, int | None]:
    """Bytes that each call keeps alive for backward; memory held by several counts at the first.

    Parameters are not counted: they live anyway.  A call whose saved tensors are held by the user's
    own hooks (checkpointing) or were overwritten has ``None``.
    """
    params = {item.facts.storage for item in recording.params if item.facts is not None}
    counted: set[int | None] = set(params)
    visited: set[Any] = set()
    found: dict[int, int | None] = {}
    for step, call in enumerate(recording.calls):
        if isinstance(call.grad_fn, HeldNode):
            _pass_over(call.grad_fn.node, visited)
            found[step] = None
        elif call.grad_fn is not None:
            found[step] = _of_call(call.grad_fn, visited, counted)
    return found


def _pass_over(node: Any, visited: set[Any]) -> None:
    """Count the nodes behind ``node`` as visited without reading what they saved."""
    queue = [node]
    while queue:
        current = queue.pop()
        if current not in visited:
            visited.add(current)
            queue.extend(following for following, _ in current.next_functions if following is not None)


def _of_call(node: Any, visited: set[Any], counted: set[int | None]) -> int | None:
    """Bytes saved by the nodes behind ``node`` that no earlier call reached."""
    total, known = 0, True
    queue = [node]
    while queue:
        current = queue.pop()
        if current in visited:
            continue
        visited.add(current)
        for tensor in _saved_tensors(current):
            if tensor is None:
                known = False
                continue
            key = storage_key(tensor)
            if key not in counted:
                counted.add(key)
                total += tensor.untyped_storage().nbytes() if key is not None else 0
        queue.extend(following for following, _ in current.next_functions if following is not None)
    return total if known else None


def _saved_tensors(node: Any) -> list[torch.Tensor | None]:
    kind = type(node)
    names = _FIELDS.get(kind)
    if names is None:
        names = tuple(n for n in dir(node) if n.startswith("_saved_") or n == "saved_tensors")
        _FIELDS[kind] = names
    found: list[torch.Tensor | None] = []
    for name in names:
        try:
            value = getattr(node, name)
        except RuntimeError:
            found.append(None)
            continue
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += [item for item in value if isinstance(item, torch.Tensor)]
    return found
