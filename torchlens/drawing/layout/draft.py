"""What the steps of one layout hand on to each other."""

from __future__ import annotations

from dataclasses import dataclass

from torchlens.drawing.layout.compose import Composition
from torchlens.drawing.layout.flow import Flow
from torchlens.drawing.layout.frames import Room
from torchlens.drawing.layout.measure import Line, Measured, Sizer
from torchlens.drawing.layout.stubs import Tags
from torchlens.drawing.layout.tree import Routes, Tree
from torchlens.drawing.scene import Scene
from torchlens.drawing.themes import Theme


@dataclass(slots=True)
class Draft:
    """A layout under way: the graph alone is done, and ``flow`` says where it stands on the page."""

    scene: Scene
    theme: Theme
    sizer: Sizer
    tree: Tree
    routes: Routes
    tags: dict[int, Tags]
    measured: list[Measured]
    rooms: list[Room]
    titles: dict[int, tuple[tuple[Line, ...], float, float]]
    composition: Composition
    flow: Flow
