"""What the command line takes for a model and its inputs."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchlens.errors import InvalidArgumentError, nearest
from torchlens.trace.trace import Trace
from torchlens.tracing import trace

LARGEST_RANDOM_INTEGER = 2
"""Integer inputs are random below this, so that they are valid ids for any table."""


def trace_of(chosen: argparse.Namespace) -> tuple[Trace, BaseException | None]:
    """Trace the model that the arguments name; of a model that raises, the partial trace."""
    torch.manual_seed(chosen.seed)
    args = tuple(tensor_from(text) for text in chosen.input)
    kwargs = keywords_from(chosen.kwargs)
    if chosen.fake:
        with torch.device("meta"):
            model = load(chosen.spec)
    else:
        model = load(chosen.spec)
    if isinstance(model, nn.Module) and not chosen.train:
        model.eval()
    try:
        with torch.set_grad_enabled(chosen.train):
            return trace(model, args, kwargs, fake=chosen.fake), None
    except Exception as error:
        partial = getattr(error, "trace", None)
        if isinstance(partial, Trace):
            return partial, error
        raise


def _refuse(problem: str, *, argument: str, value: str, remedy: str) -> InvalidArgumentError:
    code = f"cli_{argument.strip('-')}_invalid"
    return InvalidArgumentError(problem, code=code, argument=argument, value=value, remedy=remedy)


def load(spec: str) -> Any:
    """The model that ``package.module:name`` or ``path/file.py:name`` names, made if it is a factory."""
    place, separator, name = spec.rpartition(":")
    if not separator or not name:
        raise _refuse(
            f"{spec!r} names no model.",
            argument="spec",
            value=spec,
            remedy="Write package.module:name or path/file.py:name.",
        )
    module = _module_from_file(Path(place)) if place.endswith(".py") else _module(place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            close = nearest(part, dir(found))
            raise _refuse(
                f"{place} has no {part!r}.",
                argument="spec",
                value=spec,
                remedy=f"Closest: {', '.join(close)}."
                if close
                else "Name a module, class or function in it.",
            )
        found = getattr(found, part)
    return found if isinstance(found, nn.Module) else _made(found, spec)


def _made(factory: Any, spec: str) -> Any:
    """A model from a class or factory; a function that needs arguments is itself what is traced."""
    import inspect

    if not callable(factory):
        raise _refuse(
            f"{spec!r} is a {type(factory).__name__}.",
            argument="spec",
            value=spec,
            remedy="Name an nn.Module, a class, or a function.",
        )
    try:
        inspect.signature(factory).bind()
    except TypeError:
        return factory
    made = factory()
    return made if callable(made) else factory


def _module(name: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _refuse(
            f"{name!r} cannot be imported: {error}.",
            argument="spec",
            value=name,
            remedy="Check the name, or give a path to a .py file.",
        ) from error
    finally:
        sys.path.remove(str(Path.cwd()))


def _module_from_file(path: Path) -> Any:
    if not path.is_file():
        raise _refuse(f"There is no file {path}.", argument="spec", value=str(path), remedy="Check the path.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def tensor_from(text: str) -> torch.Tensor:
    """A random tensor of a shape such as ``1x3x224x224`` or ``1x16:int64``, or one read from a file."""
    if text.endswith((".pt", ".pth")):
        return _tensor_from_file(Path(text))
    shape, _, kind = text.partition(":")
    dtype = getattr(torch, kind or "float32", None)
    try:
        sizes = [int(size) for size in shape.split("x")] if shape else []
    except ValueError:
        sizes = [-1]
    if not isinstance(dtype, torch.dtype) or any(size < 0 for size in sizes):
        raise _refuse(
            f"--input {text!r} is not understood.",
            argument="--input",
            value=text,
            remedy="Write sizes joined by x, and :dtype if not float32, such as 1x16:int64; or a .pt file.",
        )
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(sizes, dtype=torch.float32).to(dtype)
    return torch.randint(0, LARGEST_RANDOM_INTEGER, sizes).to(dtype)


def _tensor_from_file(path: Path) -> torch.Tensor:
    if not path.is_file():
        raise _refuse(
            f"There is no file {path}.", argument="--input", value=str(path), remedy="Check the path."
        )
    try:
        loaded = torch.load(path, weights_only=True)
    except Exception as error:
        raise _refuse(
            f"{path} cannot be read: {type(error).__name__}.",
            argument="--input",
            value=str(path),
            remedy="Give a file written by torch.save(tensor, path).",
        ) from error
    if not isinstance(loaded, torch.Tensor):
        raise _refuse(
            f"{path} holds a {type(loaded).__name__}.",
            argument="--input",
            value=str(path),
            remedy="Give a file that holds one tensor.",
        )
    return loaded


def keywords_from(text: str) -> dict[str, Any]:
    """Keyword inputs from JSON; a string that reads as a shape becomes a tensor."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise _refuse(
            f"--kwargs is not JSON: {error}.",
            argument="--kwargs",
            value=text,
            remedy='Write an object, such as \'{"mask": "1x16:bool"}\'.',
        ) from error
    if not isinstance(found, dict):
        raise _refuse(
            "--kwargs is not an object.",
            argument="--kwargs",
            value=text,
            remedy='Write an object, such as \'{"mask": "1x16:bool"}\'.',
        )
    return {name: _keyword_value(value) for name, value in found.items()}


def _keyword_value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return tensor_from(value)
    except InvalidArgumentError:
        return value
