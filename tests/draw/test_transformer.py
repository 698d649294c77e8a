"""The transformer view finds the block, draws it open, and names the parts of attention."""

from __future__ import annotations

import nets
import pytest
import torch
import transformers
from torch import nn

import torchlens as tl
from torchlens.drawing.themes import THEMES

IDS = torch.arange(8)[None]
SMALL = {"vocab_size": 64}


def gpt2():
    config = transformers.GPT2Config(n_layer=3, n_embd=16, n_head=2, bos_token_id=0, eos_token_id=0, **SMALL)
    return transformers.GPT2Model(config), {"input_ids": IDS}


def bert():
    config = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, **SMALL
    )
    return transformers.BertModel(config), {"input_ids": IDS}


def llama():
    config = transformers.LlamaConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=32,
        **SMALL,
    )
    return transformers.LlamaModel(config), {"input_ids": IDS}


def vit():
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=8,
        patch_size=4,
    )
    return transformers.ViTModel(config), torch.ones(1, 3, 8, 8)


def t5():
    config = transformers.T5Config(d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, **SMALL)
    return transformers.T5Model(config), {"input_ids": IDS, "decoder_input_ids": IDS}


def swin():
    config = transformers.SwinConfig(
        image_size=16, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[1, 2], window_size=4
    )
    return transformers.SwinModel(config), torch.ones(1, 3, 16, 16)


def encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.ones(1, 4, 16)


def decoder():
    layer = nn.TransformerDecoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerDecoder(layer, 2), (torch.ones(1, 4, 16), torch.ones(1, 4, 16))


FOCUS = [
    (gpt2, "h.0 (GPT2Block)"),
    (bert, "encoder.layer.0 (BertLayer)"),
    (llama, "layers.0 (LlamaDecoderLayer)"),
    (vit, "layers.0 (ViTLayer)"),
    (t5, "encoder.block.0 (T5Block)"),
    (swin, "encoder.layers.0.blocks.0 (SwinLayer)"),
    (encoder, "layers.0 (TransformerEncoderLayer)"),
    (decoder, "layers.0 (TransformerDecoderLayer)"),
]


@pytest.mark.parametrize(("make", "name"), FOCUS, ids=[make.__name__ for make, _ in FOCUS])
def test_the_first_repeated_block_that_holds_attention(make, name):
    model, inputs = make()
    trace = tl.trace(model.eval(), inputs)
    drawing = trace.draw(view="transformer")
    assert drawing.caption[0].startswith(f"{name} is the first of")
    assert drawing.boxes[0].title[0].text == name.replace(" (", " · ").rstrip(")")
    assert drawing.scene.direction == "leftright"
    if make is t5:
        assert "Other blocks that hold attention: decoder.block.0." in drawing.caption


def test_parts_of_attention_are_named(stack):
    drawing = stack.draw(view="transformer")
    noted = [node for node in drawing.nodes if node.rows[-1].text.startswith("attention ")]
    assert [(node.rows[0].text, node.rows[-1].text) for node in noted] == [
        ("matmul", "attention scores"),
        ("softmax dim=-1", "attention softmax"),
        ("matmul", "attention output"),
    ]
    assert {edge.head for edge in drawing.edges} >= {"q", "k", "v"}
    assert {node.stroke for node in noted} == {THEMES["torchlens"].ink}


def test_fused_attention_is_one_node_with_its_roles_on_the_edges():
    trace = tl.trace(encoder()[0].eval(), torch.ones(1, 4, 16))
    drawing = trace.draw(view="transformer")
    fused = [node.id for node in drawing.nodes if "scaled_dot_product" in node.id]
    composed = [node.id for node in drawing.nodes if node.id.startswith("softmax")]
    assert fused or composed
    heads = {edge.head for edge in drawing.edges if not fused or edge.target == fused[0]}
    assert heads >= {"q", "k", "v"}


def test_an_explicit_module_wins(stack):
    drawing = stack.draw(view="transformer", module="blocks.1")
    assert drawing.boxes[0].title[0].text == "blocks.1 · Block"
    assert any(edge.head == "q" for edge in drawing.edges)


def test_a_single_block_is_refused():
    class Single(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = nets.Block(8)

        def forward(self, x):
            return self.block(x)

    trace = tl.trace(Single(), torch.ones(1, 3, 8))
    with pytest.raises(tl.InvalidArgumentError) as caught:
        trace.draw(view="transformer")
    assert caught.value.code == "view_subject_absent"
    assert trace.draw(view="transformer", module="block").boxes


def test_parallel_heads_are_no_blocks():
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleList(nets.Attention(8) for _ in range(3))
            self.mix = nn.Linear(24, 8)

        def forward(self, x):
            return self.mix(torch.cat([head(x) for head in self.heads], -1))

    with pytest.raises(tl.InvalidArgumentError):
        tl.trace(Heads(), torch.ones(1, 3, 8)).draw(view="transformer")
    model = nn.Sequential(Heads(), Heads())
    drawing = tl.trace(model, torch.ones(1, 3, 8)).draw(view="transformer")
    assert drawing.boxes[0].title[0].text == "0 · Heads"
