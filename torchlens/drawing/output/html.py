"""HTML of a picture alone: the SVG in a page that loads and runs nothing.

A drawing of a trace writes the interactive page instead, see :mod:`torchlens.drawing.page`.
"""

from __future__ import annotations

from torchlens.drawing.layout.placed import Placed
from torchlens.drawing.output.registry import writes
from torchlens.drawing.output.svg import svg, xml


@writes("html")
def html(placed: Placed, *, dpi: int) -> bytes:
    """Write the picture as a still page."""
    picture = svg(placed, dpi=dpi).decode("utf-8").split("\n", 1)[1]
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{xml(placed.scene.title)}</title>\n</head>\n<body>\n"
    )
    return f"{head}{picture}</body>\n</html>\n".encode()
