"""Fused attention, counted as the products that it stands for."""

from __future__ import annotations

import math

from torchlens.analysis.flop_rules.normalisation import SOFTMAX
from torchlens.analysis.flop_rules.registry import Given, Work, rule


@rule(
    "scaled_dot_product_attention",
    "scaled_dot_product_flash_attention",
    "scaled_dot_product_flash_attention_for_cpu",
    "scaled_dot_product_efficient_attention",
    "scaled_dot_product_cudnn_attention",
    "scaled_dot_product_attention_math",
)
def _attention(given: Given) -> Work:
    """``softmax(q kᵀ · scale + mask) v``: two products over all scores, causal or not.

    Not counted: the scale of each score, the mask's addition, the softmax, which the kernel does inside.
    Grouped queries share keys, which saves memory and no products.
    """
    query, key, value = given.shape(0, "query"), given.shape(1, "key"), given.shape(2, "value")
    scores = math.prod(given.out.shape[:-1]) * key[-2]
    masked = given.tensor(3, "attn_mask", "attn_bias") is not None or bool(_causal(given))
    return Work(scores * (query[-1] + value[-1]), inside=scores * (1 + masked + SOFTMAX))


def _causal(given: Given) -> bool:
    if given.name == "scaled_dot_product_attention":
        return bool(given.value(5, "is_causal", False))
    return False
