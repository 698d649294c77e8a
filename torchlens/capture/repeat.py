"""Several forwards for one trace: the first keeps the values, later ones are timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from torchlens._torch_compat import no_torch_function
from torchlens.capture.arguments import tensors_in
from torchlens.capture.recording import Recording, Timing
from torchlens.capture.run import Options, record
from torchlens.errors import warn


def record_repeatedly(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    name: str,
    options: Options,
    warmup: int,
    repeats: int,
) -> tuple[Recording, BaseException | None]:
    """``warmup + repeats`` forwards, each from the same buffers, random state and inputs.

    Keeping values distorts times (fresh memory for every output), so with more than one forward the
    durations come from the last ``repeats`` forwards other than the first.
    """
    total = warmup + repeats
    given = _Inputs(args, kwargs) if total > 1 else None
    first = options if total == 1 else replace(options, restore_state=True)
    recording, error = record(function, args, kwargs, name=name, options=first)
    if error is not None or given is None:
        recording.timing = Timing(1, 0, True, recording.timing.clock, recording.timing.durations)
        return recording, error
    timed = range(max(warmup, 1), total)
    durations = []
    for number in range(1, total):
        given.restore()
        lean = replace(
            options,
            keep=False,
            audit=False,
            saved=False,
            inspect=None,
            restore_state=options.restore_state or number < total - 1,
        )
        again, error = record(function, args, kwargs, name=name, options=lean)
        if error is not None:
            return recording, error
        if number in timed:
            durations += again.timing.durations
    recording.timing = _timing(recording, durations, warmup)
    return recording, None


def _timing(recording: Recording, durations: list[list[int]], warmup: int) -> Timing:
    """Timing from the runs that made the same calls as the recorded one."""
    calls = len(recording.log)
    same = [run for run in durations if len(run) == calls]
    if len(same) < len(durations):
        warn(
            f"{len(durations) - len(same)} of {len(durations)} timed forwards made another number of calls.",
            code="trace_runs_differ",
            remedy="Their times are left out.",
        )
    clock = recording.timing.clock
    if not same:
        return Timing(1, 0, True, clock, recording.timing.durations)
    return Timing(len(same), max(warmup, 1), False, clock, same)


class _Inputs:
    """Copies of the input tensors, for models that write to their inputs."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with no_torch_function(), torch.no_grad():
            found = [tensor for _, tensor in tensors_in((args, kwargs), "")]
            self._copies = [(t, t.detach().clone(), t._version) for t in found if not t.is_inference()]

    def restore(self) -> None:
        """Put back the content of inputs that a forward has written."""
        with no_torch_function(), torch.no_grad():
            for tensor, copy, version in self._copies:
                if tensor._version != version:
                    tensor.detach().copy_(copy)
