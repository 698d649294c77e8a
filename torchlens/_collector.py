"""Python's cyclic garbage collector, while many objects are made that are no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECT_AFTER = 100_000
"""Allocations between two collections.

A record or a graph allocates some ten objects per op, none of them garbage; at Python's default of 700
the collector would take a third of the time.
"""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect rarely inside of the block; the thresholds are put back afterwards."""
    thresholds = gc.get_threshold()
    gc.set_threshold(max(thresholds[0], COLLECT_AFTER), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
