"""The tags that stand for long lines, placed beside their nodes."""

from __future__ import annotations

from torchlens.drawing.layout.frames import TAG_LINE, TAG_REACH, TAG_SIZE, tag_text
from torchlens.drawing.layout.placed import PlacedNode, PlacedStub, PlacedText, Point
from torchlens.drawing.layout.stubs import Tags
from torchlens.drawing.scene import Direction
from torchlens.drawing.text import ASCENT, text_width
from torchlens.drawing.themes import Theme

TIP = (4.0, 1.9)


def place_tags(node: PlacedNode, tags: Tags, theme: Theme, direction: Direction) -> list[PlacedStub]:
    """Place the tags of one node: producers before it, the count of far consumers behind it."""
    if direction == "leftright":
        return _above_and_below(node, tags, theme)
    rect, texts = node.rect, [tag_text(line) for line in tags.lines()]
    marks = []
    y = rect.center[1] - TAG_LINE * (len(texts) - 1) / 2
    for text in texts:
        end = (rect.x, min(max(y, rect.y + 4), rect.bottom - 4))
        start = (rect.x - TAG_REACH, y)
        place = PlacedText(text, start[0] - 2, y + TAG_SIZE * ASCENT / 2, TAG_SIZE, theme.muted, anchor="end")
        marks.append(_mark(node, place, start, end, theme, outgoing=False))
        y += TAG_LINE
    if tags.outgoing:
        start, end = (rect.right, rect.center[1]), (rect.right + TAG_REACH, rect.center[1])
        base = end[1] + TAG_SIZE * ASCENT / 2
        place = PlacedText(str(tags.outgoing), end[0] + 2, base, TAG_SIZE, theme.muted)
        marks.append(_mark(node, place, start, end, theme, outgoing=True))
    return marks


def _above_and_below(node: PlacedNode, tags: Tags, theme: Theme) -> list[PlacedStub]:
    rect, marks = node.rect, []
    texts = [tag_text(line) for line in tags.lines()]
    y = rect.y - 8 - TAG_LINE * (len(texts) - 1)
    for text in texts:
        x = rect.x + 8
        place = PlacedText(text, x + 5, y, TAG_SIZE, theme.muted)
        marks.append(_mark(node, place, (x, y - TAG_SIZE / 2), (x, rect.y), theme, outgoing=False))
        y += TAG_LINE
    if tags.outgoing:
        text = str(tags.outgoing)
        x = rect.right - 8 - text_width(text, TAG_SIZE)
        start, end = (x, rect.bottom), (x, rect.bottom + 12)
        place = PlacedText(text, x + 4, end[1] + 3, TAG_SIZE, theme.muted)
        marks.append(_mark(node, place, start, end, theme, outgoing=True))
    return marks


def _mark(
    node: PlacedNode, text: PlacedText, start: Point, end: Point, theme: Theme, *, outgoing: bool
) -> PlacedStub:
    dx, dy = end[0] - start[0], end[1] - start[1]
    span = (dx * dx + dy * dy) ** 0.5 or 1.0
    dx, dy = dx / span, dy / span
    x, y = end[0] - dx * TIP[0], end[1] - dy * TIP[0]
    arrow = (
        (round(end[0], 2), round(end[1], 2)),
        (round(x - dy * TIP[1], 2), round(y + dx * TIP[1], 2)),
        (round(x + dy * TIP[1], 2), round(y - dx * TIP[1], 2)),
    )
    line = (round(start[0], 2), round(start[1], 2)), (round(x, 2), round(y, 2))
    tooltip = f"to {text.text} more places" if outgoing else f"from {text.text}"
    return PlacedStub(node.node.id, outgoing, text, line, arrow, theme.edge, tooltip)
