"""The code in the documentation runs, block after block in one namespace a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_there_are_pages():
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    scope: dict[str, object] = {"__name__": page.stem}
    for found in BLOCK.finditer(text):
        line = text[: found.start(1)].count("\n")
        exec(compile("\n" * line + found.group(1), str(page), "exec"), scope)
