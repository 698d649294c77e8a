"""One scope from problem to finished solution; decides which engine does it, by size alone."""

from __future__ import annotations

from dataclasses import replace

from torchlens.drawing.layout import graphviz, lanes, layered
from torchlens.drawing.layout.passing import clear
from torchlens.drawing.layout.placed import Point
from torchlens.drawing.layout.problem import BORDER, Problem, Solution, straight
from torchlens.drawing.layout.ranks import Ranking, rank

DOT_VERTICES = 1200
"""Most items and bends of long lines together that ``dot`` gets; its time grows with their square."""
DOT_POINTS = 20000.0
"""Largest width or height for ``dot``, which writes positions with five digits."""
MOST_BENDS = 150_000
"""Most bends of long lines; beyond it the longest lines run down the side instead."""


def solve(problem: Problem) -> Solution:
    """Lay out one scope; border ports end at whole points, and nothing stands left of ``x = 0``."""
    if not problem.items and not problem.segments:
        return Solution(0.0, 0.0, [], [0.0] * problem.entries, [0.0] * problem.exits, [])
    ranking = _within_bends(problem, rank(problem))
    if _suits_dot(problem, ranking):
        solution = graphviz.solve(problem, ranking)
        if not clear(problem, solution):
            solution = layered.solve(problem, ranking)
    else:
        solution = layered.solve(problem, ranking)
    lanes.route(problem, solution, ranking)
    _settle(problem, solution)
    return solution


def _bends(problem: Problem, ranking: Ranking) -> list[tuple[int, int]]:
    """Return ``(bends, segment number)`` of every forward segment."""
    pairs = enumerate(zip(problem.segments, ranking.kinds, strict=True))
    return [(ranking.span(segment) - 1, n) for n, (segment, kind) in pairs if kind == "forward"]


def _within_bends(problem: Problem, ranking: Ranking) -> Ranking:
    bends = _bends(problem, ranking)
    total = sum(count for count, _ in bends)
    kinds = list(ranking.kinds)
    for count, number in sorted(bends, reverse=True):
        if total <= MOST_BENDS:
            break
        kinds[number] = "back"
        total -= count
    return replace(ranking, kinds=tuple(kinds))


def _suits_dot(problem: Problem, ranking: Ranking) -> bool:
    vertices = len(problem.items) + sum(count for count, _ in _bends(problem, ranking))
    if vertices > DOT_VERTICES or any(item.column is not None for item in problem.items):
        return False
    high, wide = [0.0] * ranking.depth, [0.0] * ranking.depth
    for item, level in zip(problem.items, ranking.levels, strict=True):
        high[level] = max(high[level], item.height)
        wide[level] += item.width + problem.item_gap
    tall = sum(high) + problem.rank_gap * (ranking.depth + 1)
    return max(tall, *wide, 0.0) <= DOT_POINTS


def _settle(problem: Problem, solution: Solution) -> None:
    """Move everything to the right of ``x = 0`` and below ``y = 0``; straighten lines at the border."""
    points = [p for curve in solution.curves for p in curve]
    left = min([0.0, *(x for x, _ in points)])
    top = min([0.0, *(y for _, y in points)])
    right = max([solution.width, *(x for x, _ in points)])
    bottom = max([solution.height, *(y for _, y in points)])
    solution.corners = [(x - left, y - top) for x, y in solution.corners]
    solution.curves = [[(x - left, y - top) for x, y in curve] for curve in solution.curves]
    solution.width, solution.height = right - left, bottom - top
    solution.entry_x = [float(round(x - left)) for x in solution.entry_x]
    solution.exit_x = [float(round(x - left)) for x in solution.exit_x]
    for segment, curve in zip(problem.segments, solution.curves, strict=True):
        if segment.tail[0] == BORDER:
            _pull(curve, 0, solution.entry_x[segment.tail[1]], 0.0)
        if segment.head[0] == BORDER:
            _pull(curve, -1, solution.exit_x[segment.head[1]], solution.height)


def _pull(curve: list[Point], end: int, x: float, y: float) -> None:
    """Move one end of a curve to a border port that it all but touches."""
    near = 1 if end == 0 else -2
    if len(curve) == 4 and abs(curve[0][0] - curve[3][0]) < 1.01:
        start, stop = ((x, y), curve[3]) if end == 0 else (curve[0], (x, y))
        curve[:] = (
            [start, *straight(start, stop)]
            if start[0] == stop[0]
            else [start, (start[0], (start[1] + stop[1]) / 2), (stop[0], (start[1] + stop[1]) / 2), stop]
        )
        return
    curve[end] = (x, y)
    curve[near] = (x, curve[near][1])
