"""``tl.load``: a trace from a file."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import torch

from torchlens._collector import rare_collections
from torchlens._torch_compat import no_torch_function
from torchlens.capture.recording import Derived
from torchlens.errors import InvalidArgumentError, LoadError, short
from torchlens.storage.archive import Archive, ForeignError, version_of
from torchlens.storage.checks import DamagedError, place
from torchlens.storage.decode import Decoder
from torchlens.storage.layout import FORMAT, SUFFIX
from torchlens.storage.stored import Identity, StoredValues
from torchlens.trace.trace import Trace


def load(path: Any) -> Trace:
    """Read a trace that :meth:`torchlens.Trace.save` wrote.

    The graph is read at once; each value when it is asked for, so that a file may be larger than
    memory.  The file has to stay where it is as long as values are read.  Nothing in a file is run.

    Parameters
    ----------
    path : str or path
        The suffix ``.tlens`` may be left out.

    Returns
    -------
    Trace
        It prints, draws, compares and, if saved with values, is edited like the one that was saved.
        Functions that are not torch's own are known by name only; their ops cannot be replayed.

    Raises
    ------
    LoadError
        If the file is not there, no trace, from a newer version, or damaged.
    """
    where = _found(path)
    try:
        with open(where, "rb") as file:
            identity = Identity.of(file.fileno())
            with no_torch_function(), torch.no_grad(), rare_collections():
                return _read(Archive(file, identity.size), where, identity)
    except ForeignError as error:
        raise LoadError(
            f"{where} is no trace: {error}.",
            code="load_not_a_trace",
            remedy="Pass a file that trace.save wrote.",
        ) from error
    except (DamagedError, RecursionError, MemoryError) as error:
        raise LoadError(
            f"The trace file {where} is damaged ({error or type(error).__name__}).",
            code="load_damaged",
            remedy="Save the trace again.",
        ) from error
    except OSError as error:
        raise LoadError(
            f"{where} cannot be read ({error.strerror or error}).",
            code="load_unreadable",
            remedy="Check the file and its permissions.",
        ) from error


def _read(archive: Archive, where: Path, identity: Identity) -> Trace:
    header = archive.header()
    written, readable_by, version = version_of(header)
    if readable_by > FORMAT:
        raise LoadError(
            f"{where} has format {written} of torchlens {version}; this one reads up to {FORMAT}.",
            code="load_newer_format",
            remedy="Upgrade torchlens.",
        )
    data = archive.graph()
    values = StoredValues(str(where), identity, archive.stretches(data.get("regions")))
    try:
        trace = Trace(Decoder(data, values).recording())
        _check_steps(trace)
        _confirm_edits(trace)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RuntimeError) as error:
        if isinstance(error, LoadError):
            raise
        raise DamagedError(f"it makes no sense: {error!r}") from error
    return trace


def _check_steps(trace: Trace) -> None:
    """Check what refers to ops, which are built from everything else."""
    ops = trace.ops
    for steps in trace.recording.edited.values():
        for step in steps:
            place(step, ops)
    derived = trace.recording.derived
    assert isinstance(derived, Derived)
    for row in derived.branches:
        for step in ([] if row[0] is None else [row[0]], *row[6:8]):
            for one in step:
                place(one, ops)
        for child, number in (*row[8], *row[9]):
            place(number, ops[place(child, ops)].inputs)


def _confirm_edits(trace: Trace) -> None:
    """Edits of which the file names ops that it does not have are inferred."""
    labels = {op.label for op in trace.ops} if trace.edits else set()
    trace.recording.edits = [
        edit if labels.issuperset(edit.labels) else dataclasses.replace(edit, inferred=True)
        for edit in trace.edits
    ]


def _found(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise InvalidArgumentError(
            f"path={short(path)} is no path.",
            code="load_path_invalid",
            argument="path",
            value=path,
            remedy="Pass a string or a pathlib.Path.",
        )
    where = Path(os.fsdecode(path)).expanduser()
    try:
        longer = where.with_name(where.name + SUFFIX) if where.name else where
        where = longer if not where.exists() and longer.exists() else where
        if where.is_file():
            return Path(os.path.abspath(where))
        problem = "is no file" if where.exists() else "does not exist"
    except (OSError, ValueError) as error:
        problem = f"cannot be read ({error})"
    raise LoadError(f"{short(str(where))} {problem}.", code="load_file_missing", remedy="Check the path.")
