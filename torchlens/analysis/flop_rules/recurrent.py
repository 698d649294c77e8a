"""Recurrent layers and cells: the products of their gates.

Each real time step multiplies by every weight matrix of the layer once; the gates' elementwise work is
left out, as it is in ``torch.utils.flop_counter``.
"""

from __future__ import annotations

import math

from torchlens.analysis.flop_rules.registry import Given, Work, rule
from torchlens.capture.recording import TensorRecord


@rule("lstm", "gru", "rnn_tanh", "rnn_relu")
def _layers(given: Given) -> Work:
    """A packed sequence comes as its real steps, so that padding is not counted."""
    data = given.shape(0, "input")
    lists = [argument for argument in given.args[1:] if isinstance(argument, (list, tuple))]
    shapes = [item.facts.shape for item in lists[-1] if isinstance(item, TensorRecord) and item.facts]
    per_step = sum(math.prod(shape) for shape in shapes if len(shape) == 2)
    return Work(math.prod(data[:-1]) * per_step)


@rule("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
def _cell(given: Given) -> Work:
    rows = math.prod(given.shape(0, "input")[:-1])
    return Work(rows * (math.prod(given.shape(2, "w_ih")) + math.prod(given.shape(3, "w_hh"))))
