"""What a call depends on besides its arguments: random number generators and automatic casting.

It is noted only for functions that draw numbers or are cast, so that other calls pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch

from torchlens._torch_compat import any_autocast_enabled, no_torch_function
from torchlens.capture.writers import argument

DEVICES = ("cpu", "cuda", "mps", "xpu")
"""Devices whose casting is noted."""

Draws = Callable[[tuple[Any, ...], dict[str, Any]], bool]


class Generated(NamedTuple):
    """State of one generator before a call; ``given`` if the call was passed that generator."""

    device: str
    state: torch.Tensor
    given: bool


class Cast(NamedTuple):
    """Automatic casting on one device."""

    device: str
    dtype: torch.dtype


class CallContext(NamedTuple):
    """State around one call that its result depends on."""

    generated: tuple[Generated, ...] = ()
    casts: tuple[Cast, ...] = ()


def _always(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return True


def _in_training(position: int) -> Draws:
    """Draws unless its ``training`` argument, true by default, is false."""
    return lambda args, kwargs: argument(args, kwargs, position, "training", "train") is not False


def _with_probability(position: int, name: str) -> Draws:
    return lambda args, kwargs: bool(argument(args, kwargs, position, name))


_DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "dropout_", "alpha_dropout", "alpha_dropout_",
             "feature_alpha_dropout", "feature_alpha_dropout_", "feature_dropout", "feature_dropout_",
             "native_dropout")  # fmt: skip
_PARTS = ("rand", "bernoulli", "multinomial", "uniform_", "exponential_", "cauchy_", "geometric_", "poisson",
          "gumbel_softmax", "fractional_max_pool", "standard_gamma", "dirichlet", "binomial")  # fmt: skip
_DRAWING: dict[str, Draws] = {
    **{name: _in_training(2) for name in _DROPOUTS},
    "rrelu": _in_training(3),
    "rrelu_": _in_training(3),
    "rrelu_with_noise": _in_training(4),
    "scaled_dot_product_attention": _with_probability(4, "dropout_p"),
    **dict.fromkeys(("normal", "normal_", "log_normal_", "trunc_normal_"), _always),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _always),
}  # fmt: skip
_CAST = frozenset(
    """
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution
    prelu addmm addmm_ addmv addmv_ addr matmul __matmul__ __rmatmul__ einsum mm mv linear addbmm addbmm_
    baddbmm baddbmm_ bmm chain_matmul multi_dot linalg_multi_dot linalg_vecdot vecdot
    scaled_dot_product_attention lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow __pow__ __rpow__
    softplus layer_norm native_layer_norm group_norm instance_norm batch_norm rms_norm norm nuclear_norm
    frobenius_norm vector_norm matrix_norm cosine_similarity normalize poisson_nll_loss cosine_embedding_loss
    nll_loss cross_entropy hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss
    margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
    binary_cross_entropy binary_cross_entropy_with_logits gaussian_nll_loss ctc_loss dist pdist cdist renorm
    logsumexp softmax log_softmax softmin cumprod cumsum prod sum trace quantile nanquantile
    avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool2d adaptive_avg_pool3d interpolate upsample grid_sample
    grid_sampler replication_pad1d replication_pad2d replication_pad3d pad
    addcdiv addcmul atan2 bilinear cross dot vdot index_put index_put_ scatter_add scatter_add_ tensordot cat
    concat concatenate stack polar geqrf lu_solve cholesky inverse det logdet pinverse svd qr eig
    """.split()
)
_CAST_PREFIXES = ("fft_", "linalg_", "special_")


def draws_of(name: str) -> Draws | None:
    """When a function draws random numbers; ``None`` for never."""
    if name in _DRAWING:
        return _DRAWING[name]
    if name in ("__rand__", "normalize", "binomial_"):
        return None
    return _always if any(part in name for part in _PARTS) else None


def is_cast(name: str) -> bool:
    """Whether automatic casting may change what a function does."""
    return name in _CAST or name.startswith(_CAST_PREFIXES)


def note_context(
    found: dict[int, CallContext],
    step: int,
    draws: Draws | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
) -> None:
    """Remember what the coming call depends on, if on anything."""
    casting = any_autocast_enabled()
    if draws is None and not casting:
        return
    generated: tuple[Generated, ...] = ()
    if draws is not None and draws(args, kwargs or {}):
        with no_torch_function():
            generated = tuple(_generators(args, kwargs or {}))
    casts = tuple(_casts()) if casting else ()
    if generated or casts:
        found[step] = CallContext(generated, casts)


def _generators(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Generated]:
    given = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Generator)]
    if given:
        yield from (Generated(str(one.device), one.get_state(), given=True) for one in given)
        return
    yield Generated("cpu", torch.get_rng_state(), given=False)
    devices = {value.device for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)}
    asked = kwargs.get("device")
    if asked is not None:
        devices.add(torch.device(asked))
    for device in devices:
        if device.type == "cuda":
            yield Generated(str(device), torch.cuda.get_rng_state(device), given=False)


def _casts() -> Iterator[Cast]:
    for device in DEVICES:
        if torch.is_autocast_enabled(device):
            yield Cast(device, torch.get_autocast_dtype(device))


@contextmanager
def restored(context: CallContext | None) -> Iterator[None]:
    """The noted state in force; generators are put back afterwards by whoever replays the run."""
    with ExitStack() as stack:
        held = dict(context.casts) if context is not None else {}
        for device in DEVICES:
            if device in held:
                stack.enter_context(torch.autocast(device, dtype=held[device], cache_enabled=False))
            elif torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        for one in context.generated if context is not None else ():
            if not one.given and one.device == "cpu":
                torch.set_rng_state(one.state)
            elif not one.given:
                torch.cuda.set_rng_state(one.state, one.device)
        yield


def given_generators(context: CallContext | None) -> list[torch.Generator]:
    """Fresh generators in the states that those passed to the call were in."""
    found = []
    for one in context.generated if context is not None else ():
        if one.given:
            fresh = torch.Generator(one.device)
            fresh.set_state(one.state)
            found.append(fresh)
    return found
