"""From flow coordinates to the page."""

from __future__ import annotations

from dataclasses import dataclass

from torchlens.drawing.layout.placed import Curve, Point, Rect
from torchlens.drawing.layout.problem import straight
from torchlens.drawing.scene import Direction


@dataclass(frozen=True, slots=True)
class Flow:
    """Maps flow coordinates of a drawing of size ``across`` x ``along`` to the page at ``(x, y)``."""

    direction: Direction
    across: float
    along: float
    x: float = 0.0
    y: float = 0.0

    @property
    def size(self) -> tuple[float, float]:
        """Width and height on the page."""
        return (self.along, self.across) if self.direction == "leftright" else (self.across, self.along)

    def point(self, point: Point) -> Point:
        """Map a point."""
        a, b = point
        if self.direction == "leftright":
            a, b = b, a
        elif self.direction == "bottomup":
            b = self.along - b
        return round(self.x + a, 2), round(self.y + b, 2)

    def rect(self, x: float, y: float, width: float, height: float) -> Rect:
        """Map a rectangle."""
        (x0, y0), (x1, y1) = self.point((x, y)), self.point((x + width, y + height))
        return Rect(min(x0, x1), min(y0, y1), round(abs(x1 - x0), 2), round(abs(y1 - y0), 2))


def joined(curve: list[Point], more: list[Point]) -> list[Point]:
    """Continue a curve with another; a straight piece closes a gap between them."""
    if not curve:
        return list(more)
    if not more:
        return curve
    gap = abs(curve[-1][0] - more[0][0]) + abs(curve[-1][1] - more[0][1])
    if gap > 0.01:
        curve = curve + straight(curve[-1], more[0])
    return curve + more[1:]


def tidy(curve: list[Point]) -> Curve:
    """Merge straight pieces along the flow that continue each other."""
    result = [curve[0]]
    for k in range(1, len(curve) - 2, 3):
        piece = curve[k : k + 3]
        flat = len({x for x, _ in (result[-1], *piece)}) == 1
        if flat and len(result) > 3 and len({x for x, _ in result[-4:]}) == 1:
            start = result[-4]
            if (piece[-1][1] - start[1]) * (result[-1][1] - start[1]) > 0:
                result[-3:] = straight(start, piece[-1])
                continue
        result += piece
    return tuple(result)
