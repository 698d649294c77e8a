"""Applying an action to one op's value, with every check on what comes back."""

from __future__ import annotations

from typing import Any

import torch

from torchlens.capture.regions import region_of
from torchlens.capture.values import ValueStore
from torchlens.capture.writers import WHOLE, Target
from torchlens.errors import InterventionError, short
from torchlens.interventions.actions import Action


def changed(value: torch.Tensor, action: Action, op: Any, output: int, label: str) -> torch.Tensor:
    """What an action makes of a value.

    Raises
    ------
    InterventionError
        If it returns no tensor, or one of another shape, dtype or device.
    Exception
        Whatever the action raises, with a note naming the op.
    """
    try:
        given = value.clone() if action.foreign else value
        new = action.apply(given, op, output)
    except Exception as error:
        if hasattr(error, "add_note"):
            error.add_note(f"torchlens: raised by the edit {action} at {label}; the trace is unchanged")
        raise
    if not isinstance(new, torch.Tensor):
        raise InterventionError(
            f"The edit {action} returned {short(new)} for {label}, which is no tensor.",
            code="edit_value_invalid",
            op=label,
            remedy="Return the new value.",
        )
    if action.foreign and new is not given:
        new = new.clone()
    for name in ("shape", "dtype", "device"):
        got, wanted = getattr(new, name), getattr(value, name)
        if got != wanted:
            got, wanted = (tuple(got), tuple(wanted)) if name == "shape" else (got, wanted)
            raise InterventionError(
                f"The edit {action} changes the {name} of {label} from {wanted} to {got}.",
                code=f"edit_{name}_changed",
                op=label,
                remedy=f"Return a tensor with {name} {wanted}.",
            )
    return new


def written_to(tensor: torch.Tensor, targets: list[Target]) -> Target | None:
    """The write that made ``tensor``, if a call returned it after writing to its memory."""
    for target in targets:
        if target.tensor is tensor:
            return target
    return None


def write_back(target: Target, new: torch.Tensor, values: ValueStore) -> None:
    """Put a new value where a call wrote in place, so that every alias of that memory sees it.

    Of a call that wrote a part, that part is put in and the rest stays.
    """
    part = ... if target.index is WHOLE else target.index
    values.before_write(target.tensor, WHOLE, region_of(target.tensor))
    target.tensor[part] = new[part]


def chosen_outputs(count: int, wanted: tuple[int, ...] | None, label: str) -> tuple[int, ...]:
    """Which outputs of an op an edit is about."""
    if wanted is None and count == 1:
        return (0,)
    if wanted is None:
        raise InterventionError(
            f"{label} has {count} outputs and the site does not say which one is meant.",
            code="edit_output_ambiguous",
            op=label,
            remedy="Add output= to the site, such as output=0, or output=(0, 1) for two of them.",
        )
    for one in wanted:
        if not 0 <= one < count:
            raise InterventionError(
                f"{label} has no output {one}; it has {count}.",
                code="edit_output_missing",
                op=label,
                remedy=f"Choose from 0 to {count - 1}.",
            )
    return wanted
