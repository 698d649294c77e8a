"""What a trace file consists of, and the limits that a reader holds it to.

``header.json`` says what the file is, ``graph.json`` holds the record, and each
``values-NNNNN.safetensors`` holds a part of the values, uncompressed, so that one can be read alone.
"""

from __future__ import annotations

KIND = "torchlens trace"
FORMAT = 1
"""Counts every change of what is written."""

READABLE_BY = 1
"""Oldest format whose readers understand what is written; others must refuse it."""

SUFFIX = ".tlens"
HEADER = "header.json"
GRAPH = "graph.json"
REGIONS_PER_MEMBER = 16384

LARGEST_HEADER = 1 << 16
LARGEST_GRAPH = 1 << 30
LARGEST_RATIO = 100
"""A graph that would shrink more than this is stored as it is: a file that claims more is a bomb."""

SMALL = 1 << 20
"""Up to this size any ratio is harmless."""

MOST_MEMBERS = 1 << 16
DEEPEST = 100
"""Deepest nesting of containers in an argument; what lies deeper is kept as text."""


def values_member(number: int) -> str:
    """Name of a part of the values."""
    return f"values-{number:05d}.safetensors"
