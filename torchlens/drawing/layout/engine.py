"""One scope from problem to finished solution."""

from __future__ import annotations

import math
from dataclasses import replace

from torchlens.drawing.layout import lanes, layered
from torchlens.drawing.layout.problem import Problem, Solution
from torchlens.drawing.layout.ranks import Ranking, rank

MOST_BENDS = 150_000
"""Most bends of long lines; beyond it the longest lines run down the side instead."""


def solve(problem: Problem) -> Solution:
    """Lay out one scope; border ports stand at whole points, and nothing stands left of ``x = 0``."""
    if not problem.items and not problem.segments:
        return Solution(0.0, 0.0, [], [0.0] * problem.entries, [0.0] * problem.exits, [])
    ranking = _within_bends(problem, rank(problem))
    solution = layered.solve(problem, ranking)
    lanes.route(problem, solution, ranking)
    _settle(problem, solution)
    return solution


def _within_bends(problem: Problem, ranking: Ranking) -> Ranking:
    pairs = enumerate(zip(problem.segments, ranking.kinds, strict=True))
    bends = [(ranking.span(segment) - 1, n) for n, (segment, kind) in pairs if kind == "forward"]
    total = sum(count for count, _ in bends)
    if total <= MOST_BENDS:
        return ranking
    kinds = list(ranking.kinds)
    for count, number in sorted(bends, reverse=True):
        if total <= MOST_BENDS:
            break
        kinds[number] = "back"
        total -= count
    return replace(ranking, kinds=tuple(kinds))


def _settle(problem: Problem, solution: Solution) -> None:
    """Move everything to the left and top, and fit width and height around it."""
    spots = [p for curve in solution.curves for p in curve]
    spots += [(x, 0.0) for x in solution.entry_x] + [(x, solution.height) for x in solution.exit_x]
    spots += solution.corners
    far = zip(solution.corners, problem.items, strict=True)
    spots += [(x + item.width, y + item.height) for (x, y), item in far]
    left = math.floor(min(x for x, _ in spots))
    top = math.floor(min(0.0, *(y for _, y in spots)))
    solution.width = max(x for x, _ in spots) - left
    solution.height = max(solution.height, *(y for _, y in spots)) - top
    if not left and not top:
        return
    solution.corners = [(x - left, y - top) for x, y in solution.corners]
    solution.curves = [[(x - left, y - top) for x, y in curve] for curve in solution.curves]
    solution.entry_x = [x - left for x in solution.entry_x]
    solution.exit_x = [x - left for x in solution.exit_x]
    _to_border(problem, solution)


def _to_border(problem: Problem, solution: Solution) -> None:
    """Lead lines from and to the border there again after it moved up or down."""
    for segment, curve in zip(problem.segments, solution.curves, strict=True):
        if curve and segment.tail[0] == -1 and curve[0][1] != 0.0:
            curve[:] = [(curve[0][0], 0.0), *_down(curve[0][0], 0.0, curve[0][1]), *curve[1:]]
        if curve and segment.head[0] == -1 and curve[-1][1] != solution.height:
            curve += _down(curve[-1][0], curve[-1][1], solution.height)


def _down(x: float, start: float, end: float) -> list[tuple[float, float]]:
    return [(x, start + (end - start) / 3), (x, end - (end - start) / 3), (x, end)]
