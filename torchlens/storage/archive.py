"""Reading a trace file as a zip that nobody vouches for: every size, name and place is checked."""

from __future__ import annotations

import json
import zipfile
import zlib
from typing import IO, Any

from torchlens.storage.checks import DamagedError, row, rows, table, text, whole
from torchlens.storage.layout import (
    GRAPH,
    HEADER,
    KIND,
    LARGEST_GRAPH,
    LARGEST_HEADER,
    LARGEST_RATIO,
    MOST_MEMBERS,
    SMALL,
    values_member,
)
from torchlens.storage.stored import Stretch

_LOCAL_HEADER = 30
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError,
           OverflowError, KeyError, IndexError, TypeError, AttributeError)  # fmt: skip
"""What :mod:`zipfile` and :mod:`json` raise on content that is not theirs."""


class ForeignError(Exception):
    """A file that is whole, but no trace."""


class Archive:
    """An open trace file."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._size = size
        try:
            self._zip = zipfile.ZipFile(file)
        except _BROKEN as error:
            raise ForeignError("it is no zip file, or cut off") from error
        self._members = _checked(self._zip.infolist())
        if HEADER not in self._members:
            raise ForeignError("it is a zip of something else")

    def header(self) -> dict[str, Any]:
        """What the file says that it is."""
        found = table(self._json(HEADER, LARGEST_HEADER))
        if found.get("kind") != KIND:
            raise ForeignError("it is a zip of something else")
        return found

    def graph(self) -> dict[str, Any]:
        """The record."""
        return table(self._json(GRAPH, LARGEST_GRAPH))

    def _json(self, name: str, limit: int) -> Any:
        data = self._content(name, limit)
        try:
            return json.loads(data.decode("utf-8"), parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise DamagedError(f"{name} is not JSON") from error

    def _content(self, name: str, limit: int) -> bytes:
        """A whole member; what it claims and what it is are both held to the limits."""
        info = self._members.get(name)
        if info is None:
            raise DamagedError(f"{name} is missing")
        if info.file_size > limit or info.compress_size > self._size:
            raise DamagedError(f"{name} is too large")
        if info.file_size > SMALL and info.file_size > LARGEST_RATIO * info.compress_size:
            raise DamagedError(f"{name} claims to have shrunk more than it can have")
        try:
            with self._zip.open(info) as member:
                data = member.read(info.file_size + 1)
        except _BROKEN as error:
            raise DamagedError(f"{name} cannot be unpacked") from error
        if len(data) != info.file_size:
            raise DamagedError(f"{name} has another size than it claims")
        return data

    def stretches(self, value: Any) -> list[Stretch]:
        """Where in the file regions lie, from rows of member, place, size and CRC-32."""
        found = []
        starts: dict[int, tuple[int, int]] = {}
        for one in rows(value):
            number, place, size, check = row(one, 4)
            member = whole(number, 0, MOST_MEMBERS)
            if member not in starts:
                starts[member] = self._bounds(values_member(member))
            start, held = starts[member]
            if whole(place) + whole(size) > held:
                raise DamagedError("a value reaches outside of its part of the file")
            found.append(Stretch(start + place, size, whole(check, 0, (1 << 32) - 1)))
        return found

    def _bounds(self, name: str) -> tuple[int, int]:
        """Where the content of an uncompressed member begins in the file, and its size."""
        info = self._members.get(name)
        if info is None or info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise DamagedError(f"{name} is missing or compressed")
        self._file.seek(info.header_offset)
        head = self._file.read(_LOCAL_HEADER)
        if len(head) != _LOCAL_HEADER or head[:4] != b"PK\x03\x04":
            raise DamagedError(f"{name} does not begin where it should")
        skipped = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        start = info.header_offset + _LOCAL_HEADER + skipped
        if start + info.file_size > self._size:
            raise DamagedError(f"{name} reaches beyond the file")
        return start, info.file_size


def _checked(infos: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Members by name; nothing is ever unpacked to a path, but such names mean foul play."""
    if len(infos) > MOST_MEMBERS:
        raise DamagedError("it has too many members")
    found: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = info.filename
        if name in found:
            raise DamagedError("two members have one name")
        if name.startswith("/") or "\\" in name or ":" in name or ".." in name.split("/"):
            raise DamagedError("the name of a member leads out of the file")
        if info.flag_bits & 1:
            raise DamagedError("a member is encrypted")
        if info.orig_filename != name or info.header_offset < 0:
            raise DamagedError("a member has no plain name")
        found[name] = info
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def version_of(header: dict[str, Any]) -> tuple[int, int, str]:
    """Format, oldest format whose readers can read it, and the version that wrote it."""
    return whole(header.get("format")), whole(header.get("readable_by")), text(header.get("torchlens", ""))
