"""Which calls are passes of one layer."""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.capture.recording import Recording


def layers_of(recording: Recording, parents: Sequence[Sequence[int]]) -> list[int]:
    """Layer number of each call of a recording."""
    return list(range(len(recording.calls)))
