"""Leave everything as found: random number generators and registered buffers."""

from __future__ import annotations

import random
import sys
from typing import Any, NamedTuple

import torch
from torch import nn

from torchlens._torch_compat import no_torch_function, storage_key, version_of
from torchlens.capture.modules import attributes


class RandomState:
    """A snapshot of every random number generator that a forward commonly draws from."""

    def __init__(self) -> None:
        self._python = random.getstate()
        numpy = sys.modules.get("numpy")
        self._numpy: Any = numpy.random.get_state() if numpy is not None else None
        self._torch = torch.get_rng_state()
        self._devices: dict[str, Any] = {}
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            self._devices["cuda"] = torch.cuda.get_rng_state_all()
        if torch.backends.mps.is_available():
            self._devices["mps"] = torch.mps.get_rng_state()

    def restore(self) -> None:
        """Set every generator back."""
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
        torch.set_rng_state(self._torch)
        if "cuda" in self._devices:
            torch.cuda.set_rng_state_all(self._devices["cuda"])
        if "mps" in self._devices:
            torch.mps.set_rng_state(self._devices["mps"])


class _Content(NamedTuple):
    """A buffer, the memory that it had, and what was in there."""

    tensor: torch.Tensor
    memory: torch.Tensor
    content: torch.Tensor
    version: int | None


class BufferState:
    """A snapshot of the registered buffers: which tensors they are and what they hold.

    A model whose parameters come into being in its first forward is left as that forward leaves it:
    half of that step cannot be taken back.
    """

    def __init__(self, slots: list[tuple[nn.Module, str, torch.Tensor]], *, lazy: bool = False) -> None:
        self._slots = [] if lazy else list(slots)
        self._contents: list[_Content] = []
        self.seen: set[int] = set()
        with no_torch_function(), torch.no_grad():
            for _, _, tensor in self._slots:
                if id(tensor) not in self.seen:
                    self.seen.add(id(tensor))
                    content = _Content(tensor, tensor.detach(), _copy(tensor), version_of(tensor))
                    self._contents.append(content)

    def restore(self) -> None:
        """Put every buffer back, object and content."""
        with no_torch_function(), torch.no_grad():
            for module, name, tensor in self._slots:
                held = attributes(module).get("_buffers")
                if isinstance(held, dict) and held.get(name) is not tensor:
                    held[name] = tensor
            for tensor, memory, content, version in self._contents:
                if storage_key(tensor) != storage_key(memory) or tensor.shape != memory.shape:
                    tensor.data = memory
                if not _equal(tensor, content):
                    # A write that autograd did not notice (statistics of a norm) is taken back
                    # unnoticed too, so that the output's graph stays usable.
                    _assign(tensor.data if version_of(tensor) == version else tensor, content)

    def changed(self) -> list[torch.Tensor]:
        """The memory that :meth:`restore` is going to write."""
        with no_torch_function(), torch.no_grad():
            return [memory for _, memory, content, _ in self._contents if not _equal(memory, content)]


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor.device.type == "meta" else tensor.detach().clone()


def _equal(tensor: torch.Tensor, content: torch.Tensor) -> bool:
    """Whether nothing was written: same version where it tells, else same bytes."""
    if tensor.device.type == "meta" or tensor.shape != content.shape or tensor.dtype != content.dtype:
        return tensor.device.type == "meta"
    if tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized:
        return False
    return torch.equal(_bits(tensor), _bits(content))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, so that NaN equals itself."""
    plain = tensor.detach().contiguous()
    return plain.reshape(-1).view(torch.uint8) if plain.numel() else plain


def _assign(tensor: torch.Tensor, content: torch.Tensor) -> None:
    try:
        if tensor.is_inference() and not torch.is_inference_mode_enabled():
            with torch.inference_mode():
                tensor.copy_(content)
        elif (
            tensor.layout == torch.strided and tensor.shape == content.shape and tensor.dtype == content.dtype
        ):
            tensor.detach().copy_(content)
        else:
            tensor.data = content
    except RuntimeError:
        tensor.data = content
