"""PNG: the PDF of the same picture, rasterised with pypdfium2."""

from __future__ import annotations

import io

from torchlens.drawing.layout.placed import Placed
from torchlens.drawing.output.pdf import write_pdf
from torchlens.drawing.output.registry import writes

MOST_PIXELS = 60_000_000
LONGEST_SIDE = 30_000


@writes("png")
def png(placed: Placed, *, dpi: int) -> bytes:
    """Write the picture as PNG.

    A picture of more than 60 million pixels, or longer than 30,000 pixels, comes at the largest
    resolution that stays within both: most viewers open no larger ones.
    """
    import pypdfium2

    data, scale = write_pdf(placed)
    document = pypdfium2.PdfDocument(data)
    try:
        image = document[0].render(scale=_zoom(placed, dpi) / scale).to_pil()
    finally:
        document.close()
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=False)
    return buffer.getvalue()


def _zoom(placed: Placed, dpi: int) -> float:
    zoom = dpi / 72
    area, longest = placed.width * placed.height, max(placed.width, placed.height)
    return float(min(zoom, (MOST_PIXELS / area) ** 0.5, LONGEST_SIDE / longest))
