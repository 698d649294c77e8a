"""Where the texts of edges stand: beside their line, clear of nodes, lines and each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torchlens.drawing.layout.passing import Passing, Taken
from torchlens.drawing.layout.placed import PlacedText, Point, Rect
from torchlens.drawing.scene import SceneEdge
from torchlens.drawing.text import ASCENT, clean, text_width
from torchlens.drawing.themes import Theme

OFF = 3.5
STEP = 9.0
ARROW_ROOM = 11.0
"""Texts keep this far from the end of their line, where the arrow head is."""
MOST_STEPS = 60
SHORT = 90.0
"""Lines shorter than this carry the texts at their middle and head as one."""
_AWAY = (0.0, 8.0, 18.0, 32.0, 50.0)

Ground = Callable[[Point], str]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What texts have to keep clear of, and how large they are."""

    taken: Taken
    lines: Passing
    theme: Theme
    scale: float


def texts_of(edge: SceneEdge) -> tuple[str, str, str]:
    """Return the texts at the tail, the middle and the head of an edge."""
    label = edge.label or (f"×{edge.count}" if edge.count > 1 else "")
    return edge.tail, label, edge.head


def room_for(text: str, size: float) -> tuple[float, float]:
    """Return width and height of a text of an edge."""
    return text_width(clean(text), size) + 1, size * 0.95


def edge_texts(
    edge: SceneEdge, line: list[Point], number: int, around: Surroundings, ground: Ground
) -> tuple[PlacedText, ...]:
    """Place the texts of one edge along ``line`` and remember where they stand.

    ``ground`` tells the colour behind a point: a text that has to stand on a line gets a plate of it.
    """
    tail, label, head = texts_of(edge)
    if not (tail or label or head):
        return ()
    long = sum(math.dist(a, b) for a, b in itertools.pairwise(line))
    if label and head and long < SHORT:
        head, label = f"{head} {label}", ""
    wanted = (
        (head, max(long - ARROW_ROOM - 4, 0.0)),
        (tail, min(10.0, long / 3)),
        (label, long / 2 if long > 3 * ARROW_ROOM else long / 3),
    )
    spots = list(_spots(line, long))
    return tuple(_beside(clean(text), spots, goal, number, around, ground) for text, goal in wanted if text)


def _spots(line: list[Point], long: float) -> Iterator[tuple[float, Point, bool]]:
    """Return ``(distance from the start, point, whether the line runs across the page there)``."""
    last = max(long - ARROW_ROOM, long * 0.4)
    step = max(STEP / 2, last / MOST_STEPS)
    goal, walked = min(4.0, last), 0.0
    for a, b in itertools.pairwise(line):
        piece = math.dist(a, b)
        across = abs(b[0] - a[0]) > abs(b[1] - a[1])
        while piece and goal <= min(walked + piece, last):
            t = (goal - walked) / piece
            yield goal, (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t), across
            goal += step
        walked += piece


def _beside(
    text: str,
    spots: list[tuple[float, Point, bool]],
    goal: float,
    number: int,
    around: Surroundings,
    ground: Ground,
) -> PlacedText:
    """Place a text at the spot nearest to ``goal`` where it is clear of everything, or else on a line."""
    size = around.theme.label_size * around.scale
    wide, high = room_for(text, size)
    best, fewest = None, math.inf
    spots = sorted(spots, key=lambda spot: abs(spot[0] - goal))
    for away in _AWAY:
        for distance, point, across in spots:
            base = abs(distance - goal) / 12 + away / 3
            if base >= fewest:
                break
            base += _company(point, number, around)
            for extra, rect in _around(point, wide, high, away, across=across):
                if base + extra < fewest:
                    faults = base + extra + _faults(rect, number, around)
                    if faults < fewest:
                        best, fewest = rect, faults
        if fewest < 30:
            break
    assert best is not None
    around.taken.add(best)
    plate = ground(best.center) if around.lines.through(best) else None
    return _text(text, best, size, around.theme, plate)


def _company(point: Point, number: int, around: Surroundings) -> int:
    """Count the other lines that run so near that the text could mean them."""
    near = around.lines.through(Rect(point[0] - 5, point[1] - 5, 10, 10))
    return 3 * len(near - {number})


def _faults(rect: Rect, number: int, around: Surroundings) -> float:
    margin = Rect(rect.x - 2, rect.y - 1, rect.width + 4, rect.height + 2)
    taken = 1000.0 if around.taken.overlaps(margin) else 0.0
    crossed = around.lines.through(margin)
    return taken + 9 * len(crossed - {number}) + (4 if number in crossed else 0)


def _around(
    point: Point, wide: float, high: float, away: float, *, across: bool
) -> Iterator[tuple[float, Rect]]:
    """Return places beside a point of a line, and one on it."""
    x, y = point
    off = OFF + away
    sides = [
        (0.5 * across, Rect(x + off, y - high / 2, wide, high)),
        (0.5 * across, Rect(x - off - wide, y - high / 2, wide, high)),
        (0.5 * (not across), Rect(x - wide / 2, y - off - high, wide, high)),
        (0.5 * (not across), Rect(x - wide / 2, y + off, wide, high)),
    ]
    yield from sides
    if not away:
        yield 2.0, Rect(x - wide / 2, y - high / 2, wide, high)


def _text(text: str, rect: Rect, size: float, theme: Theme, plate: str | None) -> PlacedText:
    base = rect.center[1] + ASCENT * size / 2
    return PlacedText(text, round(rect.x + 0.5, 2), round(base, 2), size, theme.muted, plate=plate)
