"""The rectangles that nodes and boxes take up in the scope around them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from torchlens.drawing.layout.measure import Measured
from torchlens.drawing.layout.placed import Rect
from torchlens.drawing.layout.problem import Item, Solution
from torchlens.drawing.layout.stubs import Tags
from torchlens.drawing.scene import Direction
from torchlens.drawing.text import clean, shorten, text_width

TAG_SIZE = 8.0
TAG_LINE = 12.0
TAG_REACH = 12.0
TAG_ROOM = 150.0
BOX_PAD = 14.0
TITLE_PAD = 9.0
BAND = 7.0
MOST_SWING = 240.0
MOST_WIDENING = 70


@dataclass(frozen=True, slots=True)
class Room:
    """What a node takes up on the page: its rectangle, and space on its sides for tags and outer text."""

    width: float
    height: float
    left: float = 0.0
    right: float = 0.0
    top: float = 0.0
    bottom: float = 0.0
    least_width: float = 0.0
    least_height: float = 0.0

    @property
    def outer(self) -> tuple[float, float]:
        """Width and height with everything around."""
        return (
            max(self.left + self.width + self.right, self.least_width),
            max(self.top + self.height + self.bottom, self.least_height),
        )

    def rect(self, x: float, y: float) -> Rect:
        """Return the node's rectangle when the room's corner stands at ``(x, y)``."""
        spare_x = self.outer[0] - self.left - self.width - self.right
        spare_y = self.outer[1] - self.top - self.height - self.bottom
        if self.top or self.bottom:
            return Rect(x + self.left, y + self.top, self.width, self.height)
        return Rect(x + self.left + spare_x / 2, y + self.top + spare_y / 2, self.width, self.height)

    def item(self, direction: Direction, column: int | None) -> Item:
        """Return the room as an item in flow coordinates."""
        wide, high = self.outer
        rect = self.rect(0, 0)
        if direction == "leftright":
            return Item(high, wide, (rect.center[1],), (rect.center[1],), column)
        return Item(wide, high, (rect.center[0],), (rect.center[0],), column)


def tag_text(text: str) -> str:
    """Return the text of a tag, cut to what stands beside a node."""
    return shorten(clean(text), TAG_SIZE, TAG_ROOM)


def room_of(measured: Measured, tags: Tags | None, direction: Direction) -> Room:
    """Return the room of a node."""
    before = after = stack = 0.0
    if tags:
        names = [tag_text(line) for line in tags.lines()]
        widest = max((text_width(name, TAG_SIZE) for name in names), default=0.0)
        before = widest + TAG_REACH + 6 if names else 0.0
        stack = TAG_LINE * len(names)
        after = text_width(str(tags.outgoing), TAG_SIZE) + TAG_REACH + 6 if tags.outgoing else 0.0
    lines = sum(line.height for line in measured.lines)
    width, height = measured.width, measured.height
    if direction == "leftright":
        bottom = (lines + 5 if measured.beside else 0.0) + (TAG_LINE + 8 if after else 0.0)
        least = max(width, measured.beside, before)
        return Room(
            width,
            height,
            top=_even(stack + 8 if stack else 0),
            bottom=_even(bottom),
            least_width=_even(least),
        )
    right = max(measured.beside, after)
    least = max(height, stack, lines if measured.beside else 0.0)
    return Room(width, height, left=_even(before), right=_even(right), least_height=_even(least))


def _even(value: float) -> float:
    return 2.0 * math.ceil(value / 2.0)


@dataclass(frozen=True, slots=True)
class Frame:
    """A box in flow coordinates: size, where its content and title start, and its ports."""

    width: float
    height: float
    dx: float
    dy: float
    ins: tuple[float, ...]
    outs: tuple[float, ...]
    title_x: float
    title_y: float
    swing: float = 0.0

    def item(self, column: int | None) -> Item:
        """Return the box as an item of the scope around it."""
        return Item(self.width, self.height, self.ins, self.outs, column)


def frame_of(solution: Solution, title: tuple[float, float], direction: Direction) -> Frame:
    """Put a frame with room for a title (width, height) around a solved scope."""
    if direction == "leftright":
        return _sideways(solution, title)
    wide, high = title
    band = math.ceil(high + BAND) if wide else 0
    ports = solution.entry_x if direction == "topdown" else solution.exit_x
    place, left, right = _title_place(sorted(ports), solution.width, wide)
    dx = BOX_PAD + left
    before = _lead(bool(solution.entry_x), band if direction == "topdown" else 0)
    outs, swing = _in_line(solution)
    behind = _lead(bool(solution.exit_x), band if direction == "bottomup" else 0) + swing
    height = math.ceil(before + solution.height + behind)
    title_y = 0.0 if direction == "topdown" else height - band
    return Frame(
        math.ceil(dx + solution.width + BOX_PAD + right),
        height,
        dx,
        before,
        tuple(x + dx for x in solution.entry_x),
        tuple(x + dx for x in outs),
        place,
        title_y,
        swing,
    )


def _in_line(solution: Solution) -> tuple[list[float], float]:
    """Put a single exit under a single entry, and say how much room its line needs to swing there.

    Else a chain of equal boxes would drift sideways by the difference at every box.
    """
    entries, exits = solution.entry_x, solution.exit_x
    if len(entries) != 1 or len(exits) != 1 or not 0.5 < abs(entries[0] - exits[0]) <= MOST_SWING:
        return exits, 0.0
    return list(entries), min(36.0, max(12.0, round(abs(entries[0] - exits[0]) * 0.4)))


def _lead(ports: bool, band: float) -> float:
    """Room between a border and the content: lines from ports bring their own gap."""
    if ports:
        return max(band - 5, 0)
    return band + 5 if band else BOX_PAD


def _title_place(ports: list[float], width: float, title: float) -> tuple[float, float, float]:
    """Find room for a title between the lines through its band: its x, and how much to widen the box.

    Widths to add come as ``(left, right)``.  The top left corner is preferred, even if the box has to grow
    a little for it.
    """
    if not title:
        return TITLE_PAD, 0, 0
    need = math.ceil(title + 2 * TITLE_PAD)
    stops = [0.0, *(x + BOX_PAD for x in ports), width + 2 * BOX_PAD]
    left, right = need - math.floor(stops[1]), need - math.floor(stops[-1] - stops[-2])
    if left <= MOST_WIDENING:
        return TITLE_PAD, max(left, 0), min(max(left, 0), 12)
    for start, end in itertools.pairwise(stops):
        if end - start >= need:
            return start + TITLE_PAD, 0, 0
    return (TITLE_PAD, left, 12) if left <= right else (stops[-2] + TITLE_PAD, 0, right)


def _sideways(solution: Solution, title: tuple[float, float]) -> Frame:
    """Frame a scope whose flow runs to the right: the title stands over it, beside no port."""
    wide, high = title
    band = math.ceil(high + BAND + 4) if wide else BOX_PAD
    outs, swing = _in_line(solution)
    before, behind = _lead(bool(solution.entry_x), 0), _lead(bool(solution.exit_x), 0) + swing
    missing = max(0.0, wide + 2 * TITLE_PAD - before - solution.height - behind)
    before += math.ceil(missing / 2)
    return Frame(
        math.ceil(band + solution.width + BOX_PAD - 2),
        math.ceil(before + solution.height + behind + missing / 2),
        band,
        before,
        tuple(x + band for x in solution.entry_x),
        tuple(x + band for x in outs),
        0.0,
        TITLE_PAD,
        swing,
    )
