"""The finished drawing: what :meth:`Trace.draw` returns."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchlens.drawing.layout import Placed
from torchlens.drawing.notebook import frame
from torchlens.drawing.output import render
from torchlens.drawing.scene import Scene, SceneBox, SceneEdge, SceneNode
from torchlens.drawing.target import Target, target_of, write

INLINE_WIDTH = 1200
"""Widest picture in a notebook, in pixels."""


class Drawing:
    """A finished drawing.

    Attributes
    ----------
    scene : Scene
        Everything drawn, without positions; ``nodes``, ``edges`` and ``boxes`` read through.
    placed : Placed
        The same with positions.
    path : pathlib.Path or None
        The file written, if one was.
    """

    def __init__(
        self,
        placed: Placed | Callable[[], Placed],
        target: Target,
        *,
        dpi: int = 150,
        notes: str | None = None,
        page: Callable[[], bytes] | None = None,
    ) -> None:
        self._placed = placed
        self._page = page
        self.path: Path | None = None
        self._format = target.file_format
        self._dpi = dpi
        self._notes = notes
        self._svg: str | None = None
        if target.path is not None:
            self._write(target)

    @property
    def placed(self) -> Placed:
        """What is drawn, with positions; laid out when first asked for."""
        if callable(self._placed):
            self._placed = self._placed()
        return self._placed

    @property
    def scene(self) -> Scene:
        """What is drawn, without positions."""
        return self.placed.scene

    @property
    def svg(self) -> str:
        """The picture as SVG."""
        if self._svg is None:
            self._svg = render(self.placed, "svg").decode("utf-8")
        return self._svg

    @property
    def header(self) -> tuple[str, ...]:
        """Model name and the lines under it."""
        return (self.scene.title, *self.scene.header)

    @property
    def caption(self) -> tuple[str, ...]:
        """What the picture shows and leaves out, line by line."""
        return self.scene.caption

    @property
    def nodes(self) -> list[SceneNode]:
        """The nodes drawn."""
        return self.scene.nodes

    @property
    def edges(self) -> list[SceneEdge]:
        """The edges drawn."""
        return self.scene.edges

    @property
    def boxes(self) -> list[SceneBox]:
        """The boxes drawn."""
        return self.scene.boxes

    def save(self, path: Any, *, file_format: str | None = None) -> Path:
        """Write the drawing to a file, whose suffix or ``file_format`` names the format.

        Returns
        -------
        pathlib.Path
            The file written.
        """
        if file_format is not None:
            from torchlens.drawing.settings import KEYWORDS

            KEYWORDS["file_format"].check("file_format", file_format)
        target = target_of(path, file_format)
        if target.path is None:
            target_of("", None)
        self._write(target)
        assert self.path is not None
        return self.path

    def _write(self, target: Target) -> None:
        assert target.path is not None
        write(target.path, self._bytes(target.file_format))
        if self._notes is not None:
            write(target.path.with_name(target.path.name + ".census.txt"), self._notes.encode("utf-8"))
        self.path = target.path
        if not _in_notebook():
            print(f"Drawing written to {target.path}")

    def _bytes(self, file_format: str) -> bytes:
        if file_format == "html" and self._page is not None:
            return self._page()
        return render(self.placed, file_format, dpi=self._dpi)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The picture as notebooks show it: no wider than the page; a page in a frame of its own."""
        if self._format == "html" and self._page is not None:
            return {"text/html": frame(self._page().decode("utf-8")), "text/plain": repr(self)}
        wide = min(INLINE_WIDTH, round(self.placed.width * 4 / 3))
        style = f'style="width:100%;max-width:{wide}px;height:auto" '
        svg = re.sub(r"^(.*?<svg )", lambda found: found.group(1) + style, self.svg, count=1, flags=re.DOTALL)
        return {"image/svg+xml": self.svg, "text/html": svg, "text/plain": repr(self)}

    def __repr__(self) -> str:
        scene = self.scene
        where = f", path={str(self.path)!r}" if self.path is not None else ""
        return f"Drawing({scene.title!r}, {len(scene.nodes)} nodes, {len(scene.edges)} edges{where})"


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None
