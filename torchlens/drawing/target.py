"""Where a drawing goes: the rules for paths and formats, and writing all of a file or nothing."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from torchlens.drawing.settings import FILE_FORMATS, known_formats
from torchlens.errors import InvalidArgumentError, short


class Target(NamedTuple):
    """A path to write to (``None``: nothing is written) and the format."""

    path: Path | None
    file_format: str


def target_of(path: Any, file_format: str | None) -> Target:
    """Read ``path`` and ``file_format``; nothing is touched.

    A path without a known suffix gets that of the format.

    Raises
    ------
    InvalidArgumentError
        If the two disagree, or the path cannot be one.
    """
    if path is None:
        return Target(None, file_format or "svg")
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise _refuse(path, "is no path", "Pass a string or a pathlib.Path.", "draw_path_invalid")
    where = Path(os.fsdecode(path)).expanduser()
    suffix = where.suffix[1:].lower()
    if suffix in FILE_FORMATS and file_format not in (None, suffix):
        remedy = "Change one of the two, or leave file_format out."
        problem = f"ends in .{suffix}, but file_format={file_format!r}"
        raise _refuse(path, problem, remedy, "draw_format_suffix_disagree")
    if suffix in FILE_FORMATS and suffix not in known_formats():
        remedy = f"Use one of: {', '.join(known_formats())}."
        raise _refuse(path, f"ends in .{suffix}, which cannot be written", remedy, "draw_file_format_invalid")
    chosen = file_format or (suffix if suffix in FILE_FORMATS else "svg")
    if suffix not in FILE_FORMATS:
        where = where.with_name(f"{where.name}.{chosen}")
    _check_place(where, path)
    return Target(where, chosen)


def _check_place(where: Path, given: Any) -> None:
    """Refuse a path that is a folder, or whose folder cannot be made."""
    try:
        if where.is_dir():
            raise _refuse(given, "is a folder", "Add a file name.", "draw_path_invalid")
        folder = next((parent for parent in where.parents if parent.exists()), None)
    except (OSError, ValueError) as error:
        raise _unwritable(given, error) from error
    if folder is not None and not folder.is_dir():
        raise _unwritable(given, NotADirectoryError(f"{folder} is a file"))


def write(path: Path, data: bytes) -> None:
    """Write a whole file, or none: the folder is made, and a half-written file never has its name."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise _unwritable(path, error) from error


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _unwritable(path: Any, error: Exception) -> InvalidArgumentError:
    return _refuse(path, f"cannot be written ({error})", "Choose another path.", "draw_path_unwritable")


def _refuse(path: Any, problem: str, remedy: str, code: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"path={short(str(path) if isinstance(path, os.PathLike) else path)} {problem}.",
        code=code,
        argument="path",
        value=path,
        remedy=remedy,
    )
