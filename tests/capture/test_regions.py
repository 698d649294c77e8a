"""Overlap of strided regions against the set of bytes that each touches."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from torchlens.capture.regions import Region, covers, overlap, region

DIMENSIONS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=3)
REGIONS = st.builds(
    lambda dims, offset, size: region([n for n, _ in dims], [s for _, s in dims], offset, size),
    DIMENSIONS,
    st.integers(0, 12),
    st.sampled_from([1, 2, 4, 8]),
)


def bytes_of(area: Region) -> set[int]:
    """Every byte, by walking over all positions."""
    ranges = [range(count) for count, _ in area.dims]
    return {
        area.start + sum(i * step for i, (_, step) in zip(position, area.dims)) + byte
        for position in itertools.product(*ranges)
        for byte in range(area.itemsize)
    }


@settings(max_examples=400, deadline=None, derandomize=True)
@given(REGIONS, REGIONS)
def test_overlap_is_that_of_the_bytes(a: Region, b: Region) -> None:
    assert overlap(a, b) == bool(bytes_of(a) & bytes_of(b))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(REGIONS, REGIONS)
def test_what_covers_holds_every_byte(a: Region, b: Region) -> None:
    if covers(a, b):
        assert bytes_of(b) <= bytes_of(a)


def test_unknown_regions_overlap_and_cover_nothing() -> None:
    known = region([2], [1], 0, 4)
    assert overlap(None, known)
    assert overlap(known, None)
    assert not covers(None, known)
    assert not covers(known, None)
