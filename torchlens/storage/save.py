"""``trace.save``: a trace into one file, all of it or nothing."""

from __future__ import annotations

import json
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import torch

from torchlens._collector import rare_collections
from torchlens._torch_compat import no_torch_function
from torchlens.errors import InvalidArgumentError, SaveError, check_type, short
from torchlens.storage.encode import Encoder
from torchlens.storage.layout import FORMAT, GRAPH, HEADER, KIND, LARGEST_RATIO, READABLE_BY, SMALL, SUFFIX
from torchlens.storage.members import entry, write_values

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace


def save(trace: Trace, path: Any, *, values: bool = True) -> Path:
    """Write a trace to a file; see :meth:`torchlens.Trace.save`."""
    target = target_of(path)
    check_type(values, bool, argument="values", code="save_values_invalid", wanted="True or False")
    with no_torch_function(), torch.no_grad(), rare_collections(), replacing(target) as file:
        write(trace, file, values=values)
    return target


def write(trace: Trace, file: IO[bytes], *, values: bool) -> None:
    """Write a trace; one value at a time is in memory besides those that the trace holds."""
    encoder = Encoder(trace, values=values)
    graph = encoder.data()
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        archive.writestr(entry(HEADER), json.dumps(_header(trace, values=values)))
        graph["regions"] = write_values(archive, encoder.regions) if encoder.regions is not None else []
        text = json.dumps(graph, separators=(",", ":"), allow_nan=False).encode()
        archive.writestr(entry(GRAPH, compressed=_compressible(text)), text, compresslevel=3)


def _header(trace: Trace, *, values: bool) -> dict[str, Any]:
    from torchlens import __version__

    return {
        "kind": KIND,
        "format": FORMAT,
        "readable_by": READABLE_BY,
        "torchlens": __version__,
        "torch": str(torch.__version__),
        "name": trace.name,
        "values": values,
    }


def _compressible(text: bytes) -> bool:
    """Whether it stays within what readers believe a text to shrink."""
    if len(text) <= SMALL:
        return True
    return len(text) < LARGEST_RATIO * len(zlib.compress(text, 3)) * 0.9


def target_of(path: Any) -> Path:
    """The file to write; nothing is touched."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise _refuse(path, "is no path", "Pass a string or a pathlib.Path.")
    where = Path(os.fsdecode(path)).expanduser()
    if not where.suffix:
        where = where.with_name(where.name + SUFFIX) if where.name else where
    if where.suffix.lower() != SUFFIX:
        raise _refuse(path, f"ends in {where.suffix or 'nothing'}", f"Use {SUFFIX}, or leave it out.")
    try:
        where = Path(os.path.realpath(where))
        if where.is_dir():
            raise _refuse(path, "is a folder", "Add a file name.")
        if not where.parent.is_dir():
            raise _refuse(path, "lies in a folder that does not exist", f"Make {where.parent} first.")
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise _refuse(path, f"cannot be written ({error})", "Choose another path.") from error
    return where


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``target`` when everything is written, and never before."""
    name = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with os.fdopen(handle, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise SaveError(
            f"The trace could not be written to {target} ({error.strerror or error}).",
            code="save_failed",
            remedy="Choose another path, or make room; what was there before is untouched.",
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _refuse(path: Any, problem: str, remedy: str) -> InvalidArgumentError:
    shown = short(str(path) if isinstance(path, os.PathLike) else path)
    return InvalidArgumentError(
        f"path={shown} {problem}.", code="save_path_invalid", argument="path", value=path, remedy=remedy
    )
