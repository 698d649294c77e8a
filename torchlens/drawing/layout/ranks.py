"""Which way each segment runs, and on which level each item stands."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from torchlens.drawing.layout.problem import BORDER, Problem, Segment

Kind = Literal["forward", "back", "flat"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Levels of the items (0 upwards) and the kind of every segment.

    ``flat`` segments join items of one column, which share a level.  ``main`` segments come from the
    end of the longest chain that feeds an item: they are to run straight.
    """

    levels: tuple[int, ...]
    kinds: tuple[Kind, ...]
    main: tuple[bool, ...] = ()

    @property
    def depth(self) -> int:
        """Number of levels."""
        return max(self.levels, default=-1) + 1

    def span(self, segment: Segment) -> int:
        """How many levels a forward segment runs down."""
        tail = -1 if segment.tail[0] == BORDER else self.levels[segment.tail[0]]
        head = self.depth if segment.head[0] == BORDER else self.levels[segment.head[0]]
        return head - tail


def rank(problem: Problem) -> Ranking:
    """Put every item one level below the deepest item that feeds it."""
    groups = _columns(problem)
    kinds: list[Kind] = [
        "back" if s.back or s.tail[0] == s.head[0] != BORDER else "forward" for s in problem.segments
    ]
    pairs = _pairs(problem, kinds, groups)
    order = _order(len(problem.items), pairs, groups)
    if order is None and len(set(groups)) < len(groups):
        groups = list(range(len(problem.items)))
        pairs = _pairs(problem, kinds, groups)
        order = _order(len(problem.items), pairs, groups)
    if order is None:
        _break_cycles(len(problem.items), pairs, kinds)
        pairs = _pairs(problem, kinds, groups)
        order = _order(len(problem.items), pairs, groups) or []
    for number, segment in enumerate(problem.segments):
        inner = BORDER not in (segment.tail[0], segment.head[0])
        if kinds[number] == "forward" and inner and groups[segment.tail[0]] == groups[segment.head[0]]:
            kinds[number] = "flat"
    levels, below = _levels(order, pairs, groups)
    depths = [levels[group] for group in groups]
    _pull_down(order, pairs, levels, below)
    ahead = _ahead(order, below, len(groups))
    main = _main(problem, kinds, depths, [ahead[group] for group in groups])
    return Ranking(tuple(levels[g] for g in groups), tuple(kinds), main)


def _columns(problem: Problem) -> list[int]:
    first: dict[int, int] = {}
    groups = []
    for number, item in enumerate(problem.items):
        groups.append(number if item.column is None else first.setdefault(item.column, number))
    return groups


def _pairs(problem: Problem, kinds: list[Kind], groups: list[int]) -> list[tuple[int, int, int]]:
    """Forward segments between different groups as ``(tail, head, segment number)``."""
    pairs = []
    for number, segment in enumerate(problem.segments):
        tail, head = segment.tail[0], segment.head[0]
        if kinds[number] == "forward" and BORDER not in (tail, head) and groups[tail] != groups[head]:
            pairs.append((groups[tail], groups[head], number))
    return pairs


def _order(count: int, pairs: list[tuple[int, int, int]], groups: list[int]) -> list[int] | None:
    """Return the groups in topological order, or None if the pairs run in a circle."""
    below: dict[int, list[int]] = defaultdict(list)
    waiting = [0] * count
    for tail, head, _ in pairs:
        below[tail].append(head)
        waiting[head] += 1
    ready = [g for g in range(count) if groups[g] == g and not waiting[g]]
    order = []
    for group in ready:
        order.append(group)
        for head in below[group]:
            waiting[head] -= 1
            if not waiting[head]:
                ready.append(head)
    return order if len(order) == sum(1 for g in range(count) if groups[g] == g) else None


def _break_cycles(count: int, pairs: list[tuple[int, int, int]], kinds: list[Kind]) -> None:
    """Mark as recurrence what closes a circle in a depth-first walk in item order."""
    below: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for tail, head, number in pairs:
        below[tail].append((head, number))
    state = [0] * count
    for start in range(count):
        stack = [(start, iter(below[start]))] if not state[start] else []
        state[start] = state[start] or 1
        while stack:
            item, rest = stack[-1]
            step = next(rest, None)
            if step is None:
                state[item] = 2
                stack.pop()
            elif state[step[0]] == 1:
                kinds[step[1]] = "back"
            elif state[step[0]] == 0:
                state[step[0]] = 1
                stack.append((step[0], iter(below[step[0]])))


def _levels(
    order: list[int], pairs: list[tuple[int, int, int]], groups: list[int]
) -> tuple[list[int], dict[int, list[int]]]:
    """Return the length of the longest chain over every group, and the groups that each one feeds."""
    level = [0] * len(groups)
    below: dict[int, list[int]] = defaultdict(list)
    for tail, head, _ in pairs:
        below[tail].append(head)
    for group in order:
        for head in below[group]:
            level[head] = max(level[head], level[group] + 1)
    return level, below


def _pull_down(
    order: list[int], pairs: list[tuple[int, int, int]], level: list[int], below: dict[int, list[int]]
) -> None:
    """Put groups right over the first one that they feed where that makes no line longer in sum.

    What hangs on a far source then stands by its consumer, and the slack lies on the source's lines.
    """
    fed: dict[int, int] = defaultdict(int)
    for _, head, _ in pairs:
        fed[head] += 1
    for group in reversed(order):
        if below[group] and fed[group] <= len(below[group]):
            level[group] = min(level[head] for head in below[group]) - 1


def _ahead(order: list[int], below: dict[int, list[int]], count: int) -> list[int]:
    """Return the length of the longest chain under every group."""
    ahead = [0] * count
    for group in reversed(order):
        if below[group]:
            ahead[group] = 1 + max(ahead[head] for head in below[group])
    return ahead


def _main(problem: Problem, kinds: list[Kind], depths: list[int], ahead: list[int]) -> tuple[bool, ...]:
    """Mark the segment from the deepest tail of every head, unless two tails are equally deep.

    Of several such segments from one tail, the one that starts the longest chain is left, if any.
    """
    forward = [number for number, kind in enumerate(kinds) if kind == "forward"]
    heads: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for number in forward:
        segment = problem.segments[number]
        key = segment.head if segment.head[0] == BORDER else (segment.head[0], 0)
        heads[key].append((-1 if segment.tail[0] == BORDER else depths[segment.tail[0]], number))
    tails: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for number in _leaders(heads):
        segment = problem.segments[number]
        key = segment.tail if segment.tail[0] == BORDER else (segment.tail[0], 0)
        tails[key].append((-1 if segment.head[0] == BORDER else ahead[segment.head[0]], number))
    longest = _leaders(tails)
    ties = {number for rivals in tails.values() for _, number in rivals if _tied(rivals)}
    chosen = longest | ties
    return tuple(number in chosen for number in range(len(problem.segments)))


def _leaders(rivals: dict[tuple[int, int], list[tuple[int, int]]]) -> set[int]:
    """Return the number of the entry with the largest value under every key, where there is one."""
    return {max(entries)[1] for entries in rivals.values() if not _tied(entries)}


def _tied(entries: list[tuple[int, int]]) -> bool:
    most = max(entries)[0]
    return sum(1 for value, _ in entries if value == most) > 1
