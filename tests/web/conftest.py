from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))

import torchlens as tl
from torchlens.demo import models

collect_ignore = [] if os.environ.get("TORCHLENS_WEB") else ["test_browser.py"]
"""The browser's tests need Chromium; ``make test-web`` runs them."""

HOSTILE = "</script><script>window.hurt=1</script><img src=x onerror='hurt=1'>\"&javascript:hurt=1\u2028"


@pytest.fixture(scope="session")
def gpt() -> tl.Trace:
    torch.manual_seed(0)
    return tl.trace(models.build_gpt(layers=4), torch.randint(0, 50, (1, 16)))


@pytest.fixture(scope="session")
def resnet() -> tl.Trace:
    torch.manual_seed(0)
    return tl.trace(models.build_resnet(width=8), torch.randn(2, 3, 32, 32))


@pytest.fixture(scope="session")
def rnn() -> tl.Trace:
    torch.manual_seed(0)
    return tl.trace(models.build_rnn_loop(), torch.randn(2, 60, 16))


@pytest.fixture(scope="session")
def hostile() -> tl.Trace:
    class Evil(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.relu() + 1

    Evil.__name__ = HOSTILE
    model = nn.Sequential()
    model.add_module(HOSTILE.replace(".", ""), Evil())
    model.add_module("plain", Evil())
    return tl.trace(model, torch.randn(2, 3), name=HOSTILE)
