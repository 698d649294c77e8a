"""The public surface: its names, and what importing it brings along."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import torchlens as tl

NAMES = """
Buffer InterventionError InvalidArgumentError Layer LoadError Module NodeSpec NotFoundError Op Param SaveError
TorchLensError TorchLensWarning Trace add clamp diff func in_module label load mean module noise params
replace scale swap trace where zero
"""
HEAVY = ("IPython", "pandas", "pygraphviz", "fpdf", "pypdfium2", "transformers", "torch._dynamo")


def test_the_list_of_public_names_is_frozen() -> None:
    public = {name for name in vars(tl) if not name.startswith("_")}
    rooms = {"analysis", "capture", "demo", "drawing", "errors", "interventions", "trace", "tracing"}
    loose = {"cli", "cli_model", "storage"}
    assert public - rooms - loose | {"trace"} == set(NAMES.split())


def test_importing_brings_nothing_heavy() -> None:
    code = f"""
import sys, torch
before = set(sys.modules)
import torchlens
new = set(sys.modules) - before
print(sorted(name for name in {HEAVY!r} if name in new))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_is_that_of_the_distribution() -> None:
    assert tl.__version__ == version("torchlens")
