"""One operation per element: of the output where each is made by itself, of the input in reductions."""

from __future__ import annotations

import math

from torchlens.analysis.flop_rules.normalisation import SOFTMAX
from torchlens.analysis.flop_rules.registry import Given, rule, size
from torchlens.capture.recording import TensorRecord

_ARITHMETIC = """
add sub rsub mul div floordiv mod fmod pow float_power neg abs sign sgn square sqrt rsqrt reciprocal
exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 sin cos tan asin acos atan atan2 arctan2
arcsin arccos arctan sinh cosh tanh asinh acosh atanh arcsinh arccosh arctanh sinc erf erfc erfinv
lgamma digamma polygamma mvlgamma i0 i0e i1 i1e xlogy xlog1py entr ndtr log_ndtr ndtri zeta gammainc
gammaincc gammaln psi ceil floor round trunc fix frac clamp clip clamp_min clamp_max maximum minimum
fmax fmin hypot copysign nextafter ldexp heaviside lerp addcmul addcdiv nan_to_num deg2rad rad2deg
sigmoid expit logit log_sigmoid logsigmoid relu relu6 leaky_relu prelu rrelu elu selu celu gelu silu
mish softplus softsign softshrink hardshrink tanhshrink hardtanh hardsigmoid hardswish threshold glu
and or xor bitwise_not lshift rshift bitwise_left_shift bitwise_right_shift eq ne lt le gt ge
isclose isnan isinf isfinite isposinf isneginf isreal logical_and logical_or logical_not logical_xor
where masked_fill masked_scatter conj_physical angle polar gcd lcm signbit kron alpha_dropout
feature_alpha_dropout cross
"""


@rule(*_ARITHMETIC.split(), shapeless=True)
def _elementwise(given: Given) -> int:
    return given.out_size


_REDUCTIONS = """
sum nansum mean nanmean prod argmax argmin amax amin aminmax all any is_all_true is_any_true norm vector_norm
matrix_norm
std var std_mean var_mean cumsum cumprod cummax cummin logcumsumexp count_nonzero trace diff median
nanmedian mode quantile nanquantile histc bincount equal allclose topk kthvalue renorm fold
"""


@rule(*_REDUCTIONS.split(), shapeless=True)
def _reduction(given: Given) -> int:
    return given.in_size


@rule("max", "min")
def _extreme(given: Given) -> int:
    """Of one tensor a reduction, of two an elementwise choice."""
    return given.out_size if isinstance(given.value(1, "other"), TensorRecord) else given.in_size


@rule("sort", "argsort", "msort", "unique", "unique_consecutive", "searchsorted", "bucketize")
def _sort(given: Given) -> int:
    """``n log2 n`` comparisons over the longest dimension or, without one, over all elements."""
    shape = given.shape(0, "input", "sorted_sequence", "self")
    length = max(shape, default=1)
    return math.prod(shape) * max(1, (length - 1).bit_length())


@rule("dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout", "native_dropout")
def _dropout(given: Given) -> int:
    return given.out_size if given.value(2, "training", given.value(2, "train", True)) else 0


@rule("scatter_add", "index_add", "scatter_reduce", "index_reduce")
def _accumulate(given: Given) -> int:
    source = given.tensor(3, "src", "source")
    return given.out_size if source is None else size(source)


@rule("embedding_bag")
def _embedding_bag(given: Given) -> int:
    """Every row that is looked up is added to its bag."""
    first, second = given.tensor(0, "input"), given.tensor(1, "weight")
    if first is None or second is None:
        raise LookupError(given.name)
    indices, table = (first, second) if not first.dtype.is_floating_point else (second, first)
    return size(indices) * table.shape[-1]


@rule("cross_entropy")
def _cross_entropy(given: Given) -> int:
    """A softmax of the scores, then a sum over what the targets pick."""
    target = given.tensor(1, "target")
    picked = size(target) if target is not None else 0
    return SOFTMAX * given.in_size + picked


@rule("nll_loss", "nll_loss_nd", "gaussian_nll_loss", "poisson_nll_loss")
def _picked_loss(given: Given) -> int:
    target = given.tensor(1, "target")
    return size(target) if target is not None else given.in_size


@rule(
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "soft_margin_loss", "hinge_embedding_loss", "cosine_similarity",
    "pairwise_distance",
)  # fmt: skip
def _pairwise(given: Given) -> int:
    """Difference or product, a function of it, and its sum."""
    return 3 * given.in_size


@rule("to", "type", "float", "half", "bfloat16", "double", "int", "long", "bool", shapeless=True)
def _cast(given: Given) -> int:
    return 0
