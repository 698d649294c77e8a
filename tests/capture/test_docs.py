"""The code on the page about capture runs as printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "capture.md"


def test_the_page_on_capture_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    scope: dict[str, Any] = {}
    for block in blocks:
        exec(block, scope)
