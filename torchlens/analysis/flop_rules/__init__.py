"""How many floating point operations each function takes, as small rules on shapes.

A rule is found by the function's plain name.  One multiply-add counts as two operations.
"""

from torchlens.analysis.flop_rules import (
    attention,
    convolution,
    elementwise,
    linear_algebra,
    normalisation,
    pooling,
    products,
    recurrent,
    unmoved,
)
from torchlens.analysis.flop_rules.registry import RULES, Given, Work, rule

__all__ = [
    "RULES",
    "Given",
    "Work",
    "attention",
    "convolution",
    "elementwise",
    "linear_algebra",
    "normalisation",
    "pooling",
    "products",
    "recurrent",
    "rule",
    "unmoved",
]
