"""Writing the values: safetensors members of a zip, one region after the other."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

import torch

from torchlens.storage.layout import REGIONS_PER_MEMBER, values_member
from torchlens.storage.names import SAFETENSORS
from torchlens.storage.regions import Region, Regions
from torchlens.storage.stored import View

CHUNK = 1 << 24
"""Bytes copied at a time."""


def entry(name: str, *, compressed: bool = False) -> zipfile.ZipInfo:
    """A zip entry without a date, so that equal traces make equal files."""
    made = zipfile.ZipInfo(name)
    made.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    made.external_attr = 0o644 << 16
    return made


def write_values(file: zipfile.ZipFile, found: Regions) -> list[list[int]]:
    """Write every region; for each its member, its place there, its size and its CRC-32."""
    alone = _alone(found)
    rows: list[list[int]] = []
    for member, start in enumerate(range(0, len(found.regions), REGIONS_PER_MEMBER)):
        part = found.regions[start : start + REGIONS_PER_MEMBER]
        head = _head(part, start, alone)
        with file.open(entry(values_member(member)), "w", force_zip64=True) as target:
            target.write(len(head).to_bytes(8, "little") + head)
            place = 8 + len(head)
            for region in part:
                rows.append([member, place, region.size, _copy(region, target)])
                place += region.size
    return rows


def _copy(region: Region, target: IO[bytes]) -> int:
    """Write the bytes of a region; their CRC-32."""
    check = 0
    for chunk in _chunks(region):
        data: Any = memoryview(chunk.cpu().numpy())  # type: ignore[arg-type]
        check = zlib.crc32(data, check)
        target.write(data)
    return check


def _chunks(region: Region) -> Iterator[torch.Tensor]:
    storage, start, device = region.storage, region.start, region.device
    if region.make is not None:
        made = region.make()
        storage, start, device = made.untyped_storage(), 0, made.device
    assert storage is not None
    for offset in range(0, region.size, CHUNK):
        size = min(CHUNK, region.size - offset)
        yield torch.empty(0, dtype=torch.uint8, device=device).set_(storage, start + offset, (size,), (1,))


def _alone(found: Regions) -> dict[int, View]:
    """The regions that one plain tensor fills, so that safetensors can say what it is."""
    views: dict[int, list[View]] = {}
    for view in found.views:
        if view is not None:
            views.setdefault(view.region, []).append(view)
    return {
        region: held[0]
        for region, held in views.items()
        if len(held) == 1 and _fills(held[0], found.regions[region])
    }


def _fills(view: View, region: Region) -> bool:
    if view.dtype not in SAFETENSORS or view.offset or view.conj:
        return False
    size = torch.empty(0, dtype=getattr(torch, view.dtype)).element_size()
    for count, step in zip(reversed(view.shape), reversed(view.strides)):
        if count != 1 and step * getattr(torch, view.dtype).itemsize != size:
            return False
        size *= count
    return size == region.size


def _head(part: list[Region], first: int, alone: dict[int, View]) -> bytes:
    """The header of a safetensors file."""
    entries: dict[str, Any] = {}
    place = 0
    for number, region in enumerate(part, first):
        view = alone.get(number)
        dtype, shape = ("U8", [region.size]) if view is None else (SAFETENSORS[view.dtype], list(view.shape))
        end = place + region.size
        entries[str(number)] = {"dtype": dtype, "shape": shape, "data_offsets": [place, end]}
        place = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)
