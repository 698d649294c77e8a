"""Models as people run them: traced and drawn, outputs equal to the plain forward bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

import torchlens as tl

Case = tuple[torch.nn.Module, dict[str, Any]]
IDS = torch.tensor([[3, 7, 1, 9, 2, 4]])


def gpt2() -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=50, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return GPT2LMHeadModel(config).eval(), {"input_ids": IDS}


def llama() -> Case:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=50,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config).eval(), {"input_ids": IDS, "use_cache": False}


def vit() -> Case:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=16,
        patch_size=8,
        num_labels=3,
    )
    return ViTForImageClassification(config).eval(), {"pixel_values": torch.randn(1, 3, 16, 16)}


class Counter(TorchFunctionMode):
    """Counts calls that return a tensor, independently of the recorder."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        parts = out if isinstance(out, (tuple, list)) else (out,)
        wrote = getattr(func, "__name__", "") == "__setitem__"
        self.count += wrote or any(isinstance(part, torch.Tensor) for part in parts)
        return out


@pytest.mark.parametrize("build", [gpt2, llama, vit])
def test_traced_and_drawn_as_it_is(build: Any, tmp_path: Any) -> None:
    model, inputs = build()
    with torch.no_grad():
        plain = model(**inputs)
        with Counter() as counter:
            model(**inputs)
        trace = tl.trace(model, inputs, audit=True)
    assert type(trace.output) is type(plain)
    assert trace.output.keys() == plain.keys()
    assert torch.equal(trace.output.logits, plain.logits)
    assert trace.totals.ops == counter.count
    assert trace.audit is not None
    assert trace.audit.count == 0
    assert trace.totals.params == sum(p.numel() for p in model.parameters())
    drawing = trace.draw(tmp_path / "model.svg")
    drawn = {node.id for node in drawing.nodes}
    assert {op.label for op in trace if op.kind == "call" and not op.is_orphan} <= drawn
    assert (tmp_path / "model.svg").stat().st_size > 10_000
