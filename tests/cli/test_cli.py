"""The command line: outputs, exit codes, one clear line for a wrong argument."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from torchlens.cli import main

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x, mask=None):
        y = self.fc(x)
        return y if mask is None else y * mask
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(MODEL)
    return f"{tmp_path / 'net.py'}:Net"


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchlens.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Done:
        capsys.readouterr()
        code = main(arguments)
        return Done(code, *capsys.readouterr())

    return command


def test_as_a_process(model: str, tmp_path: Path) -> None:
    out = tmp_path / "net.svg"
    done = process("draw", model, "--input", "3x4", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert str(out) in done.stdout
    wrong = process("summary", model, "--input", "3xq")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("torchlens: --input")


def test_draw_writes_the_file_and_says_where(run: Run, model: str, tmp_path: Path) -> None:
    out = tmp_path / "net.svg"
    done = run("draw", model, "--input", "3x4", "--view", "compute", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert str(out) in done.stdout
    assert "<svg" in out.read_text()


def test_summary_as_table_and_as_json(run: Run, model: str) -> None:
    table = run("summary", model, "--input", "3x4")
    assert table.returncode == 0
    assert "Linear" in table.stdout
    data = json.loads(run("summary", model, "--input", "3x4", "--json").stdout)
    assert data["totals"]["params"] == 10
    assert data["totals"]["flops"] == 2 * 3 * 4 * 2 + 3 * 2
    assert sum(row["params"] for row in data["modules"]) == 10


def test_keywords_and_files_as_inputs(run: Run, model: str, tmp_path: Path) -> None:
    torch.save(torch.ones(3, 4), tmp_path / "x.pt")
    done = run(
        "summary", model, "--input", str(tmp_path / "x.pt"), "--kwargs", '{"mask": "3x2:bool"}', "--ops"
    )
    assert done.returncode == 0, done.stderr
    assert "mul_1_2" in done.stdout
    assert "mask" in done.stdout


def test_fake_run_of_a_large_model(run: Run, model: str) -> None:
    done = run("summary", model, "--input", "1000000x4", "--fake")
    assert done.returncode == 0, done.stderr
    assert "(1000000, 2)" in done.stdout


def test_a_model_that_raises_is_drawn_up_to_there(run: Run, model: str, tmp_path: Path) -> None:
    out = tmp_path / "part.svg"
    done = run("draw", model, "--input", "3x5", "-o", str(out))
    assert done.returncode == 1
    assert "the model raised RuntimeError" in done.stderr
    assert out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--input", "3xq"], "is not understood"),
        (["--input", "3x4:int128"], "is not understood"),
        (["--input", "gone.pt"], "no file gone.pt"),
        (["--input", "3x4", "--kwargs", "{"], "--kwargs is not JSON"),
        (["--input", "3x4", "--kwargs", "[1]"], "not an object"),
        (["--input", "3x4", "--view", "overwiew"], "Did you mean 'overview'?"),
        (["--input", "3x4", "--set", "dpi"], "has no '='"),
        (["--input", "3x4", "--set", "colour_by=1"], "colour_by"),
    ],
)
def test_wrong_arguments_cost_one_line_and_write_nothing(
    run: Run, model: str, tmp_path: Path, arguments: list[str], words: str
) -> None:
    out = tmp_path / "never.svg"
    done = run("draw", model, *arguments, "-o", str(out))
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize(
    "spec", ["nothing", "no_such_module_here:f", "torch:no_such_name", "torch:__version__"]
)
def test_wrong_specs(run: Run, spec: str) -> None:
    done = run("summary", spec)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_views_lists_the_nine(run: Run) -> None:
    lines = run("views").stdout.splitlines()
    names = [line.split()[0] for line in lines]
    expected = "overview debug speed memory compute dims transformer sequence interventions"
    assert names == expected.split()
    assert all(line.rstrip().endswith("?") for line in lines)
