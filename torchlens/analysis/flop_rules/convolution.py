"""Convolutions: each output sees ``Cin / groups`` times the kernel's size; transposed, each input does.

Dilation and stride change which positions meet, not how many products each takes.  Products with
padding are counted, as they are computed.
"""

from __future__ import annotations

import math

from torchlens.analysis.flop_rules.registry import Answer, Given, Work, rule


def _bias(given: Given) -> int:
    return given.out_size if given.tensor(2, "bias") is not None else 0


@rule("conv1d", "conv2d", "conv3d")
def _conv(given: Given) -> Work:
    return Work(given.out_size * math.prod(given.shape(1, "weight")[1:]), _bias(given))


@rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(given: Given) -> Work:
    return Work(math.prod(given.shape(0, "input")) * math.prod(given.shape(1, "weight")[1:]), _bias(given))


@rule("convolution")
def _convolution(given: Given) -> Answer:
    return _conv_transpose(given) if given.value(6, "transposed", False) else _conv(given)


@rule("conv_tbc")
def _conv_tbc(given: Given) -> Work:
    kernel, channels, _ = given.shape(1, "weight")
    return Work(given.out_size * kernel * channels, _bias(given))
