"""The example notebooks hold what a run gave, and no error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_was_run(path):
    cells = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    assert cells
    for cell in cells:
        assert cell["execution_count"]
        assert [output["output_type"] for output in cell["outputs"]] == ["execute_result"]
        assert any(tag in "".join(cell["outputs"][0]["data"]["text/html"]) for tag in ("<svg ", "<iframe "))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_code_still_runs(path):
    space: dict[str, object] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), path.name, "exec"), space)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 2
