from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import nets


@pytest.fixture(scope="session")
def stack():
    return nets.stack()


@pytest.fixture(scope="session")
def loop():
    return nets.loop()


@pytest.fixture(scope="session")
def cell_loop():
    return nets.cell_loop()


@pytest.fixture(scope="session")
def residual():
    return nets.residual()


@pytest.fixture(scope="session")
def mlp():
    return nets.mlp()
