"""Layout: a scene gets positions.

Every open box is laid out by itself and then stands as one rectangle in the box around it; equal boxes
are laid out once.  :func:`lay_out` is pure: the same scene gives the same numbers on every machine.
"""

from torchlens.drawing.layout.page import lay_out as lay_out
from torchlens.drawing.layout.placed import Placed as Placed

__all__ = ["Placed", "lay_out"]
