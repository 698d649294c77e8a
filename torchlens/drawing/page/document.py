"""The file around the data: markup, style, script and fonts, with a policy that lets nothing else run.

Everything that stems from a model travels as JSON in which no ``<`` is left, and the script only ever
sets it as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlens.drawing.page.data import page_data
from torchlens.drawing.settings import Settings
from torchlens.drawing.text import FONTS, clean

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace

BUNDLE = Path(__file__).parent / "bundle"
PACK_FROM = 1_000_000
"""Letters of JSON from which on it is packed."""
_FACES = ((400, "Inter-Regular.ttf"), (600, "Inter-SemiBold.ttf"))


def page(trace: Trace, asked: Settings) -> bytes:
    """Write the page of a trace.

    Parameters
    ----------
    trace : Trace
    asked : Settings
        The settings as the caller gave them.

    Returns
    -------
    bytes
        The file.
    """
    return document(trace.name, page_data(trace, asked)).encode("utf-8")


def document(title: str, data: dict[str, Any]) -> str:
    """The markup around the data of a page."""
    style, script = _style(), _script()
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src 'sha256-{_digest(script)}'",
            f"style-src 'sha256-{_digest(style)}'",
            "font-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(clean(title))}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            '<div id="app"></div>',
            "<noscript>This page draws its picture with a script.</noscript>",
            _block(as_json(data)),
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _block(text: str) -> str:
    """The element that holds the data; much of it travels packed."""
    if len(text) <= PACK_FROM:
        return f'<script type="application/json" id="data">{text}</script>'
    packed = base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")
    return f'<script type="text/plain" id="data" data-packed="deflate">{packed}</script>'


def as_json(data: Any) -> str:
    """JSON that can stand inside of a script element whatever texts it holds."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


@lru_cache(maxsize=1)
def _script() -> str:
    return (BUNDLE / "page.js").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _style() -> str:
    faces = [
        f"@font-face{{font-family:Inter;font-weight:{weight};src:url(data:font/ttf;base64,"
        f"{base64.b64encode((FONTS / name).read_bytes()).decode('ascii')})}}"
        for weight, name in _FACES
    ]
    return "".join(faces) + (BUNDLE / "page.css").read_text(encoding="utf-8")
