"""Clocks: nanoseconds on the host, or events on a device resolved after the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import torch


class HostClock:
    """Wall time of the calling thread's calls."""

    name = "cpu"

    def __init__(self, now: Callable[[], int] = time.perf_counter_ns) -> None:
        self.now = now

    def resolve(self, log: list[tuple[Any, ...]]) -> list[int]:
        """Nanoseconds of each logged call."""
        return [entry[7] - entry[6] for entry in log]


class DeviceClock:
    """Time on the device: one event before and after each call, one synchronisation at the end.

    Kernels run after the call that launched them has returned, so host time would measure the
    launch.
    """

    name = "device events"

    def __init__(self, *, event: Callable[[], Any], synchronize: Callable[[], None]) -> None:
        self._event = event
        self._synchronize = synchronize
        self._events: list[Any] = []

    def now(self) -> int:
        """Record an event and return its number."""
        event = self._event()
        event.record()
        self._events.append(event)
        return len(self._events) - 1

    def resolve(self, log: list[tuple[Any, ...]]) -> list[int]:
        """Nanoseconds of each logged call; waits for the device once."""
        self._synchronize()
        found = []
        for entry in log:
            start, end = self._events[entry[6]], self._events[entry[7]]
            found.append(0 if start is end else int(start.elapsed_time(end) * 1e6))
        return found


Clock = HostClock | DeviceClock


def clock_for(tensors: Iterable[torch.Tensor]) -> Clock:
    """Device events if a tensor of the run lives on CUDA, else host time."""
    if any(tensor.device.type == "cuda" for tensor in tensors):
        return DeviceClock(
            event=lambda: torch.cuda.Event(enable_timing=True), synchronize=torch.cuda.synchronize
        )
    return HostClock()
