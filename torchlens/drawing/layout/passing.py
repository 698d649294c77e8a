"""Where lines pass, for keeping texts clear of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from torchlens.drawing.layout.placed import Curve, Point

CLEAR = 4.0
_BUCKET = 24.0
_STEPS = 20


def point_at(curve: Curve, place: float) -> Point:
    """Return the point at ``place`` (0 to the number of pieces) of a Bezier curve."""
    piece = min(int(place), (len(curve) - 1) // 3 - 1)
    t = place - piece
    a, b, c, d = curve[3 * piece : 3 * piece + 4]
    s = 1 - t
    weights = s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t
    x, y = (sum(w * p[k] for w, p in zip(weights, (a, b, c, d), strict=True)) for k in (0, 1))
    return x, y


@dataclass(slots=True)
class Passing:
    """Places where lines pass, by height."""

    places: dict[int, list[tuple[float, float, int]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, curve: list[Point], number: int) -> None:
        """Remember a line."""
        line = tuple(curve)
        for step in range(_STEPS * ((len(curve) - 1) // 3) + 1):
            x, y = point_at(line, step / _STEPS)
            self.places[int(y // _BUCKET)].append((x, y, number))

    def near(self, corner: Point, size: tuple[float, float], reach: float = CLEAR) -> set[int]:
        """Return the lines that pass through a rectangle, or within ``reach`` of it."""
        (x, y), (width, height) = corner, size
        return {
            number
            for bucket in range(int(y // _BUCKET) - 1, int((y + height) // _BUCKET) + 2)
            for px, py, number in self.places.get(bucket, ())
            if x - reach < px < x + width + reach and y - reach < py < y + height + reach
        }
