"""What each view says of itself under the header."""

from __future__ import annotations

from torchlens.drawing.overlay import Layers
from torchlens.drawing.plan import Plan
from torchlens.drawing.settings import Settings


def view_lines(plan: Plan, layers: Layers, settings: Settings) -> list[str]:
    """Caption lines of a view."""
    return []
