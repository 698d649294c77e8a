"""Normalisations and the softmax family, by the passes over the data that their definitions take."""

from __future__ import annotations

from torchlens.analysis.flop_rules.registry import Given, rule

SOFTMAX = 5
"""Per element: largest, difference, exponential, sum, quotient."""

MOMENTS = 4
"""Per element: sum for the mean, difference, square, sum for the variance."""


@rule("softmax", "log_softmax", "softmin", "sparse_softmax", "sparse_log_softmax")
def _softmax(given: Given) -> int:
    return SOFTMAX * given.out_size


@rule("gumbel_softmax")
def _gumbel_softmax(given: Given) -> int:
    """Two logarithms, two signs, a sum and a quotient before the softmax."""
    return (SOFTMAX + 6) * given.out_size


@rule("logsumexp")
def _logsumexp(given: Given) -> int:
    """Largest, difference, exponential, sum; a logarithm and a sum for each result."""
    return 4 * given.in_size + 2 * given.out_size


def _affine(given: Given, weight: int, bias: int) -> int:
    return sum(
        given.tensor(position, name) is not None for position, name in ((weight, "weight"), (bias, "bias"))
    )


@rule("layer_norm", "native_layer_norm", "group_norm")
def _moments_of_features(given: Given) -> int:
    return (MOMENTS + 1 + _affine(given, 2, 3)) * given.out_size


@rule("instance_norm")
def _instance_norm(given: Given) -> int:
    return (MOMENTS + 1 + _affine(given, 3, 4)) * given.out_size


@rule("batch_norm")
def _batch_norm(given: Given) -> int:
    """With stored statistics only a difference and a product are left."""
    base = MOMENTS + 1 if given.value(5, "training", False) else 2
    return (base + _affine(given, 3, 4)) * given.out_size


@rule("rms_norm")
def _rms_norm(given: Given) -> int:
    """Square, sum, product; and the weight's product."""
    return (3 + (given.tensor(2, "weight") is not None)) * given.out_size


@rule("normalize")
def _normalize(given: Given) -> int:
    """Square, sum, quotient."""
    return 3 * given.out_size


@rule("local_response_norm")
def _local_response_norm(given: Given) -> int:
    """Square, sum over neighbours, then product, sum, power and quotient."""
    return (5 + int(given.value(1, "size"))) * given.out_size


@rule("weight_norm_interface", "weight_norm")
def _weight_norm(given: Given) -> int:
    return 3 * given.out_size
