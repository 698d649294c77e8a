"""A line that tells that a long run goes on: how many ops so far, and for how long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import TextIO

DELAY = 2.0
"""Seconds before the line first shows."""

INTERVAL = 0.5
"""Seconds between updates."""


def wanted(setting: bool | None, stream: TextIO) -> bool:
    """Whether to show progress: as told, else in a terminal or notebook."""
    if setting is not None:
        return setting
    shell = sys.modules.get("IPython")
    return stream.isatty() or (shell is not None and shell.get_ipython() is not None)


@contextmanager
def progress(
    ops: Sized, *, setting: bool | None, stream: TextIO | None = None, delay: float = DELAY
) -> Iterator[None]:
    """Show the number of recorded ops while the body runs; a thread reads it, the run is not slowed."""
    out = stream if stream is not None else sys.stderr
    if not wanted(setting, out):
        yield
        return
    stop = threading.Event()
    worker = threading.Thread(target=_report, args=(ops, stop, out, delay), daemon=True)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def _report(ops: Sized, stop: threading.Event, out: TextIO, delay: float) -> None:
    start = time.perf_counter()
    if stop.wait(delay):
        return
    while True:
        out.write(f"\rtorchlens: {len(ops):,} ops, {time.perf_counter() - start:.1f} s ")
        out.flush()
        if stop.wait(INTERVAL):
            break
    out.write("\n")
    out.flush()
