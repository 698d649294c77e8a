"""Facts about small random transformers, against what their configurations say."""

from __future__ import annotations

import os

import pytest
import torch

import torchlens as tl
from torchlens.analysis.attention import attention
from torchlens.analysis.branches import branches
from torchlens.analysis.finite import nonfinite
from torchlens.analysis.flops import work
from torchlens.analysis.memory import peak_bytes
from torchlens.analysis.repeats import repeats

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

V, D, H, FF, T, B = 50, 16, 2, 32, 6, 2
IDS = torch.tensor([[3, 7, 1, 9, 2, 4], [5, 1, 1, 8, 3, 6]])
ENDS = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
BOTH = pytest.mark.parametrize("kind", ["eager", "sdpa"])
FORM = {"eager": "composed", "sdpa": "fused"}


def traced(config, model, inputs, **options):
    torch.manual_seed(0)
    return tl.trace(model(config).eval(), inputs, **options)


def products(trace):
    done = [w for op, w in zip(trace.ops, work(trace), strict=True) if op.kind == "call"]
    assert None not in done, "a call is unknown"
    return sum(w.macs for w in done)


def blocks(trace, name):
    """Addresses in the run whose class has ``name``."""
    return [
        [call.module.address for call in repeat.calls]
        for repeat in repeats(trace)
        if name in repeat.class_name and repeat.chained
    ]


def sites(trace):
    return [(s.form, s.relation, s.heads, s.kv_heads, s.q_length, s.k_length) for s in attention(trace)]


def encoder(t, d=D, ff=FF):
    """Multiply-adds of one encoder layer: four projections, two products of scores, two layers."""
    return 4 * t * d * d + 2 * t * t * d + 2 * t * d * ff


def gpt2(kind="eager", layers=12):
    return transformers.GPT2Config(
        vocab_size=V, n_positions=32, n_embd=D, n_layer=layers, n_head=H, attn_implementation=kind, **ENDS
    )


@BOTH
def test_gpt2(kind):
    trace = traced(gpt2(kind), transformers.GPT2LMHeadModel, {"input_ids": IDS, "use_cache": False})
    assert sites(trace) == [(FORM[kind], "self", H, H, T, T)] * 12
    assert [s.call.module.address for s in attention(trace)] == [f"transformer.h.{i}.attn" for i in range(12)]
    assert blocks(trace, "Block") == [[f"transformer.h.{i}" for i in range(12)]]
    assert products(trace) == B * (12 * encoder(T, ff=4 * D) + T * D * V)
    assert not trace.is_recurrent
    assert {b.kind for b in branches(trace)} <= {"if"}
    assert set(nonfinite(trace)) <= {"finite", "-inf"}
    assert 0 < peak_bytes(trace) <= trace.totals.bytes


def test_gpt2_generating_has_a_pass_a_token():
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(gpt2(layers=2)).eval()
    wanted = {"input_ids": IDS[:1], "max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False}
    trace = tl.trace(model.generate, wanted)
    (block,) = (m for m in trace.modules if m.address.endswith("transformer.h.0.mlp.c_fc"))
    assert len(block.calls) == 5
    assert {op.num_passes for op in block.ops} == {5}
    assert [s.q_length for s in attention(trace)] == [T] * 2 + [1] * 8
    assert [s.k_length for s in attention(trace)] == [T, T, 7, 7, 8, 8, 9, 9, 10, 10]
    assert {s.relation for s in attention(trace)} == {"self"}


@BOTH
def test_bert(kind):
    config = transformers.BertConfig(
        vocab_size=V, hidden_size=D, num_hidden_layers=3, num_attention_heads=H, intermediate_size=FF,
        max_position_embeddings=32, attn_implementation=kind,
    )  # fmt: skip
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    trace = traced(config, transformers.BertModel, {"input_ids": IDS, "attention_mask": mask})
    assert sites(trace) == [(FORM[kind], "self", H, H, T, T)] * 3
    assert blocks(trace, "Layer") == [[f"encoder.layer.{i}" for i in range(3)]]
    assert products(trace) == B * (3 * encoder(T) + D * D)
    # Outside of the layers the padding mask is joined mask by mask in a loop that carries its result.
    assert {layer.type for layer in trace.layers if layer.num_passes > 1} == {"and", "to"}
    assert all(layer.num_passes == 1 for layer in trace.layers if len(layer.modules) > 1)


def grouped(t):
    """Projections with half the key heads, and the products of scores."""
    return 3 * t * D * D + 2 * t * t * D


@BOTH
def test_llama(kind):
    config = transformers.LlamaConfig(
        vocab_size=V, hidden_size=D, intermediate_size=FF, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, pad_token_id=0, attn_implementation=kind,
    )  # fmt: skip
    trace = traced(config, transformers.LlamaForCausalLM, {"input_ids": IDS, "use_cache": False})
    assert sites(trace) == [(FORM[kind], "self", 4, 2, T, T)] * 3
    assert blocks(trace, "Layer") == [[f"model.layers.{i}" for i in range(3)]]
    assert products(trace) == B * (3 * (grouped(T) + 3 * T * D * FF) + T * D * V)
    assert not trace.is_recurrent


def decoder(s, t):
    """Self attention over ``s``, cross attention from ``s`` to ``t``, two layers."""
    return encoder(s) + 2 * s * D * D + 2 * t * D * D + 2 * s * t * D


def test_t5():
    config = transformers.T5Config(
        vocab_size=V,
        d_model=D,
        d_kv=8,
        d_ff=FF,
        num_layers=3,
        num_heads=H,
        decoder_start_token_id=0,
        pad_token_id=0,
    )
    inputs = {"input_ids": IDS, "decoder_input_ids": IDS[:, :4], "use_cache": False}
    trace = traced(config, transformers.T5ForConditionalGeneration, inputs)
    found = [(s.relation, s.heads, s.q_length, s.k_length) for s in attention(trace)]
    assert found == [("self", H, T, T)] * 3 + [("self", H, 4, 4), ("cross", H, 4, T)] * 3
    # The first block of each stack alone makes the position bias, and so differs from the others.
    assert blocks(trace, "Block") == [
        ["encoder.block.1", "encoder.block.2"],
        ["decoder.block.1", "decoder.block.2"],
    ]
    assert products(trace) == B * (3 * encoder(T) + 3 * decoder(4, T) + 4 * D * V)


@BOTH
def test_vit(kind):
    config = transformers.ViTConfig(
        hidden_size=D, num_hidden_layers=3, num_attention_heads=H, intermediate_size=FF, image_size=16,
        patch_size=4, attn_implementation=kind,
    )  # fmt: skip
    trace = traced(config, transformers.ViTModel, {"pixel_values": torch.randn(1, 3, 16, 16)})
    assert sites(trace) == [(FORM[kind], "self", H, H, 17, 17)] * 3
    assert [len(run) for run in blocks(trace, "Layer")] == [3]
    assert products(trace) == 16 * 3 * 4 * 4 * D + 3 * encoder(17) + D * D


def test_mamba_scans_step_by_step():
    state, kernel, inner, rank = 4, 4, 2 * D, 1
    config = transformers.MambaConfig(
        vocab_size=V,
        hidden_size=D,
        state_size=state,
        num_hidden_layers=2,
        conv_kernel=kernel,
        expand=2,
        **ENDS,
    )
    trace = traced(config, transformers.MambaForCausalLM, {"input_ids": IDS, "use_cache": False})
    assert attention(trace) == []
    assert blocks(trace, "Block") == [["backbone.layers.0", "backbone.layers.1"]]
    per_token = D * 2 * inner + inner * (rank + 2 * state) + rank * inner + inner * state + inner * D
    convolution = (T + kernel - 1) * inner * kernel
    assert products(trace) == B * (2 * (T * per_token + convolution) + T * D * V)
    assert trace.is_recurrent
    assert {layer.num_passes for layer in trace.layers} == {1, T}
    scans = [layer for layer in trace.layers if layer.type == "matmul" and layer.num_passes == T]
    assert [layer.module.address for layer in scans] == [f"backbone.layers.{i}.mixer" for i in range(2)]


@BOTH
def test_mixtral_counts_the_experts_that_ran(kind):
    experts, picked = 4, 2
    config = transformers.MixtralConfig(
        vocab_size=V, hidden_size=D, intermediate_size=FF, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=experts, num_experts_per_tok=picked,
        max_position_embeddings=32, attn_implementation=kind,
    )  # fmt: skip
    trace = traced(config, transformers.MixtralForCausalLM, {"input_ids": IDS, "use_cache": False})
    assert sites(trace) == [(FORM[kind], "self", 4, 2, T, T)] * 2
    per_token = D * experts + picked * 3 * D * FF
    assert products(trace) == B * (2 * (grouped(T) + T * per_token) + T * D * V)


@BOTH
def test_whisper(kind):
    config = transformers.WhisperConfig(
        vocab_size=V, d_model=D, encoder_layers=2, decoder_layers=2, encoder_attention_heads=H,
        decoder_attention_heads=H, encoder_ffn_dim=FF, decoder_ffn_dim=FF, num_mel_bins=8,
        max_source_positions=10, max_target_positions=16, decoder_start_token_id=1,
        attn_implementation=kind, **ENDS,
    )  # fmt: skip
    inputs = {"input_features": torch.randn(1, 8, 20), "decoder_input_ids": IDS[:1, :4], "use_cache": False}
    trace = traced(config, transformers.WhisperForConditionalGeneration, inputs)
    form = FORM[kind]
    assert (
        sites(trace)
        == [(form, "self", H, H, 10, 10)] * 2
        + [
            (form, "self", H, H, 4, 4),
            (form, "cross", H, H, 4, 10),
        ]
        * 2
    )
    assert blocks(trace, "Layer") == [
        ["model.encoder.layers.0", "model.encoder.layers.1"],
        ["model.decoder.layers.0", "model.decoder.layers.1"],
    ]
    convolutions = 20 * D * 8 * 3 + 10 * D * D * 3
    assert products(trace) == convolutions + 2 * encoder(10) + 2 * decoder(4, 10) + 4 * D * V


SMALL = {
    "vocab_size": V, "hidden_size": D, "intermediate_size": FF, "num_attention_heads": H,
    "max_position_embeddings": 32, "pad_token_id": 0, "attn_implementation": "eager",
}  # fmt: skip


def test_albert_has_one_pass_a_use_of_its_layer():
    config = transformers.AlbertConfig(**SMALL, embedding_size=8, num_hidden_layers=4)
    trace = traced(config, transformers.AlbertModel, {"input_ids": IDS})
    shared = [layer for layer in trace.layers if "albert_layers" in str(layer.module)]
    assert shared
    assert {layer.num_passes for layer in shared} == {4}
    assert sites(trace) == [("composed", "self", H, H, T, T)] * 4
    assert any(len(run) == 4 for run in blocks(trace, "Layer"))


def test_swin_attends_in_windows():
    window, depths, heads = 2, [2, 2], [2, 4]
    config = transformers.SwinConfig(
        image_size=16, patch_size=2, embed_dim=8, depths=depths, num_heads=heads, window_size=window,
        attn_implementation="eager",
    )  # fmt: skip
    trace = traced(config, transformers.SwinModel, {"pixel_values": torch.randn(1, 3, 16, 16)})
    expected = [h for h, depth in zip(heads, depths, strict=True) for _ in range(depth)]
    assert sites(trace) == [("composed", "self", h, h, window**2, window**2) for h in expected]
    assert not trace.is_recurrent


def test_routers_and_sinks_of_a_sparse_model():
    config = transformers.GptOssConfig(
        **SMALL, num_hidden_layers=3, num_key_value_heads=1, head_dim=8, num_local_experts=4,
        num_experts_per_tok=2, sliding_window=4,
    )  # fmt: skip
    trace = traced(config, transformers.GptOssForCausalLM, {"input_ids": IDS, "use_cache": False})
    assert sum(op.type == "softmax" for op in trace.ops) == 2 * 3  # a router in every layer as well
    assert sites(trace) == [("composed", "self", H, 1, T, T)] * 3


def test_latents_that_attend_to_the_input():
    config = transformers.PerceiverConfig(
        num_latents=4, d_latents=D, d_model=D, num_blocks=1, num_self_attends_per_block=2,
        num_self_attention_heads=H, num_cross_attention_heads=H,
    )  # fmt: skip
    trace = traced(config, transformers.PerceiverModel, {"inputs": torch.randn(1, T, D)})
    assert sites(trace) == [("composed", "cross", H, H, 4, T)] + [("composed", "self", H, H, 4, 4)] * 2
