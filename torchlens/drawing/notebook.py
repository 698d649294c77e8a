"""What notebooks show: a page in a frame of its own, and a trace as a card over its overview."""

from __future__ import annotations

import warnings
from html import escape
from typing import TYPE_CHECKING, Any

from torchlens.drawing.captions import header_lines
from torchlens.drawing.text import clean

if TYPE_CHECKING:
    from torchlens.trace.trace import Trace

FRAME_HEIGHT = 720
"""Height of a page in a notebook, in pixels."""


def frame(page: str) -> str:
    """A page inside of a frame that can neither reach the notebook nor the network."""
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" title="torchlens" '
        f'style="width:100%;height:{FRAME_HEIGHT}px;border:1px solid #C9C9C4;border-radius:6px"></iframe>'
    )


def card(trace: Trace) -> dict[str, Any]:
    """The summary of a trace, with its overview below, as a bundle of MIME types."""
    from torchlens.drawing.draw import draw

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        picture = draw(trace, view="overview")._repr_mimebundle_()["text/html"]
    rows = "".join(
        f"<tr><th{_LEFT}>{_text(name)}</th><td{_LEFT}>{_text(value)}</td></tr>"
        for name, value in facts(trace)
    )
    table = f'<table style="border-collapse:collapse;margin:4px 0 10px">{rows}</table>'
    return {
        "text/html": f"<div><strong>{_text(trace.name)}</strong>{table}{picture}</div>",
        "text/plain": repr(trace),
    }


_LEFT = ' style="text-align:left;padding:2px 14px 2px 0;font-weight:normal"'


def _text(text: str) -> str:
    return escape(clean(text))


def facts(trace: Trace) -> list[tuple[str, str]]:
    """Names and values of the card."""
    totals = trace.totals
    rows = [("graph", " ".join(header_lines(trace)))]
    if totals.flops:
        rows.append(
            (
                "FLOPs",
                str(totals.flops)
                + (f", unknown for {totals.unknown_flops} ops" if totals.unknown_flops else ""),
            )
        )
    rows.append(("layers", f"{len(trace.layers)} in {len(trace.modules)} modules"))
    if trace.failure is not None:
        rows.append(("stopped by", f"{type(trace.failure.exception).__name__}: {trace.failure.exception}"))
    rows.append(("next", 'trace.draw(view="speed"), trace.draw("page.html"), trace.summary()'))
    return rows
