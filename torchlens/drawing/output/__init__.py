"""Output: a placed picture becomes the bytes of a file, one short module a format.

A format is a function ``(placed, *, dpi) -> bytes`` under its name in :data:`FORMATS`; a new one is a
new module with a decorated function, and a line here that imports it.
"""

from torchlens.drawing.output import dot, html, json, pdf, png, svg, txt
from torchlens.drawing.output.registry import FORMATS as FORMATS
from torchlens.drawing.output.registry import render as render
from torchlens.drawing.output.registry import writes as writes

__all__ = ["FORMATS", "dot", "html", "json", "pdf", "png", "render", "svg", "txt", "writes"]
