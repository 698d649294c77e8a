"""Values that lie in a file and are read when they are asked for."""

from __future__ import annotations

import os
import threading
import zlib
from collections import OrderedDict
from typing import Any, NamedTuple

import torch

from torchlens.errors import LoadError
from torchlens.storage.names import STORED

HELD = 1 << 26
"""Bytes of regions that stay in memory after reading, for values that are read several times."""

AGAIN = "Load it again with tl.load."


class View(NamedTuple):
    """How a value lies in its region: dtype, sizes, strides, offset in elements; and where it was."""

    region: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    conj: bool
    device: torch.device


class Stretch(NamedTuple):
    """Where the bytes of a region stand in the file, how many they are, and their CRC-32."""

    start: int
    size: int
    check: int


class Identity(NamedTuple):
    """What tells whether a file is still the one that was loaded."""

    size: int
    changed: int
    number: int

    @classmethod
    def of(cls, handle: int) -> Identity:
        """Of an open file."""
        found = os.fstat(handle)
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


class StoredValues:
    """The values of one file; the file is opened for each reading and closed again."""

    def __init__(self, path: str, identity: Identity, regions: list[Stretch]) -> None:
        self.path = path
        self.regions = regions
        self._identity = identity
        self._held: OrderedDict[int, tuple[torch.Tensor, int]] = OrderedDict()
        self._lock = threading.Lock()

    def bytes_of(self, region: int) -> torch.Tensor:
        """The bytes of a region.

        Raises
        ------
        LoadError
            If the file is gone or another one, or its bytes are not those that were written.
        """
        with self._lock:
            found = self._held.get(region)
            if found is not None and found[0]._version == found[1]:
                self._held.move_to_end(region)
                return found[0]
            data = self._read(self.regions[region])
            self._held[region] = (data, data._version)
            while len(self._held) > 1 and sum(one.numel() for one, _ in self._held.values()) > HELD:
                self._held.popitem(last=False)
            return data

    def value(self, view: View) -> torch.Tensor:
        """A value, on the device that it was on if that is here."""
        return on_device(laid_out(self.bytes_of(view.region), view), view.device)

    def _read(self, stretch: Stretch) -> torch.Tensor:
        data = torch.empty(stretch.size, dtype=torch.uint8)
        content: Any = memoryview(data.numpy())  # type: ignore[arg-type]
        try:
            with open(self.path, "rb", buffering=0) as file:
                if Identity.of(file.fileno()) != self._identity:
                    raise _gone(self.path, "has changed since it was loaded")
                file.seek(stretch.start)
                done = 0
                while done < stretch.size:
                    count = file.readinto(content[done:])
                    if not count:
                        raise _damaged(self.path)
                    done += count
        except OSError as error:
            raise _gone(self.path, f"cannot be read any more ({error.strerror or error})") from error
        if zlib.crc32(content) != stretch.check:
            raise _damaged(self.path)
        return data


class StoredValue:
    """One value in a file, in the place of the past content of a record."""

    __slots__ = ("status", "values", "view")
    sealed = True

    def __init__(self, values: StoredValues, view: View, status: str | None) -> None:
        self.values = values
        self.view = view
        self.status = status

    def read(self, kept: torch.Tensor, stamp: int) -> torch.Tensor:
        """The value."""
        return self.values.value(self.view)


def laid_out(data: torch.Tensor, view: View) -> torch.Tensor:
    """A value over the bytes of its region."""
    dtype = STORED[view.dtype]
    usable = data.numel() // dtype.itemsize * dtype.itemsize
    found = data[:usable].view(dtype).as_strided(view.shape, view.strides, view.offset)
    return found.conj() if view.conj else found


def on_device(value: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A value on another device, or where it is if that device is not here."""
    if device == value.device:
        return value
    try:
        return value.to(device)
    except (RuntimeError, AssertionError, NotImplementedError):
        return value


PLACEHOLDER = torch.empty(0, device="meta")
"""Stands for the kept value of every record whose value lies in a file."""


def _gone(path: str, problem: str) -> LoadError:
    return LoadError(f"The trace file {path} {problem}.", code="load_file_changed", remedy=AGAIN)


def _damaged(path: str) -> LoadError:
    return LoadError(
        f"A value in the trace file {path} is damaged.",
        code="load_value_damaged",
        remedy="Save the trace again, or read other values.",
    )
