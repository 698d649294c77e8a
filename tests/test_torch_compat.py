"""Every name of torch that the package reaches past its public page still does what we use it for."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from torchlens import _torch_compat as compat


class Seen(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_no_torch_function_hides_calls_from_modes() -> None:
    with Seen() as seen, compat.no_torch_function():
        torch.ones(2) + 1
    assert seen.names == []


def test_depth_counts_modes() -> None:
    before = compat.function_mode_depth()
    with Seen():
        assert compat.function_mode_depth() == before + 1


def test_transforms_are_seen_and_unwrapped() -> None:
    assert compat.transform_level() is None
    inside = []

    def body(row: torch.Tensor) -> torch.Tensor:
        inside.append((compat.transform_level(), compat.is_transform_wrapper(row)))
        inside.append(compat.unwrap_transform(row).shape)
        return row

    x = torch.ones(2, 3)
    torch.vmap(body)(x)
    assert inside[0][0] is not None
    assert inside[0][1]
    assert inside[1] == x.shape
    assert not compat.is_transform_wrapper(x)


def test_autocast_is_seen() -> None:
    assert not compat.any_autocast_enabled()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert compat.any_autocast_enabled()


def test_dispatch_mode_imports_no_compiler() -> None:
    code = (
        "import sys, torch\n"
        "from torchlens._torch_compat import DispatchMode, dynamo_loaded\n"
        "class M(DispatchMode):\n"
        "    def __torch_dispatch__(self, f, t, a=(), k=None):\n"
        "        seen.append(str(f)); return f(*a, **(k or {}))\n"
        "seen = []\n"
        "with M(): torch.ones(2) + 1\n"
        "assert 'aten.add.Tensor' in seen, seen\n"
        "assert not dynamo_loaded() and 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_storage_key_is_that_of_the_memory() -> None:
    x = torch.ones(2, 3)
    assert compat.storage_key(x) == compat.storage_key(x[0].t())
    assert compat.storage_key(x) != compat.storage_key(x.clone())
    assert compat.storage_key(torch.ones(2, device="meta")) is not None
    assert compat.storage_key(torch.eye(2).to_sparse()) is None


def test_storage_guard_keeps_the_key_but_not_the_memory() -> None:
    keys, guards = set(), []
    for _ in range(50):
        x = torch.ones(1000)
        guards.append(compat.storage_guard(x))
        keys.add(compat.storage_key(x))
        del x
    assert len(keys) == 50
    assert all(guard is not None and guard.expired() for guard in guards)
    assert compat.storage_guard(torch.eye(2).to_sparse()) is None


def test_version_counts_writes() -> None:
    x = torch.ones(2)
    before = compat.version_of(x)
    assert before is not None
    x.view(-1).add_(1)
    assert compat.version_of(x) == before + 1
    with torch.inference_mode():
        assert compat.version_of(torch.ones(2)) is None


def test_fake_tensors_are_recognised() -> None:
    with compat.FakeTensorMode():
        assert compat.is_fake(torch.ones(2))
    assert not compat.is_fake(torch.ones(2))
    assert len(compat.fake_failures()) == 3
    with compat.FakeTensorMode(), pytest.raises(compat.fake_failures()):
        bool(torch.ones(2).sum() > 0)


def test_saved_tensor_hooks_are_seen() -> None:
    assert not compat.saved_tensor_hooks_active()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert compat.saved_tensor_hooks_active()


def test_a_copy_without_override_shows_its_inner_calls() -> None:
    opened = compat.without_function_override(F.multi_head_attention_forward)
    wanted_names = list(inspect.signature(F.multi_head_attention_forward).parameters)
    assert list(inspect.signature(opened).parameters) == wanted_names
    a = nn.MultiheadAttention(4, 2)
    x = torch.randn(3, 1, 4)
    given = (x, x, x, 4, 2, a.in_proj_weight, a.in_proj_bias, None, None, False, 0.0, a.out_proj.weight,
             a.out_proj.bias)  # fmt: skip
    with Seen() as seen:
        out, weights = opened(*given)
    assert "softmax" in seen.names
    wanted, wanted_weights = F.multi_head_attention_forward(*given)
    assert torch.equal(out, wanted)
    assert torch.equal(weights, wanted_weights)


def test_code_of_function_apply_holds_class_and_arguments() -> None:
    found = []

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            frame = sys._getframe()
            while frame.f_code is not compat.FUNCTION_APPLY:
                frame = frame.f_back
            found.append((frame.f_locals["cls"], frame.f_locals["args"]))
            return x * 1

    x = torch.ones(2)
    Identity.apply(x)
    assert found[0][0] is Identity
    assert found[0][1][0] is x


def test_uninitialized_tensors_are_recognised() -> None:
    assert isinstance(nn.LazyLinear(2).weight, compat.UninitializedTensorMixin)


def test_the_installed_release_is_one_that_is_supported() -> None:
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    oldest, newest = (tuple(map(int, v.split("."))) for v in (compat.OLDEST_TORCH, compat.NEWEST_TORCH))
    assert oldest <= release <= newest
