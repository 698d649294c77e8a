"""What computes nothing: views, copies, choices by index, and making tensors from nothing."""

from __future__ import annotations

from torchlens.analysis.flop_rules.registry import Given, rule

_VIEWS = """
view reshape flatten unflatten squeeze unsqueeze transpose permute swapaxes swapdims movedim
moveaxis t T mT H mH adjoint expand expand_as broadcast_to view_as reshape_as ravel narrow select
slice diagonal unbind chunk split split_with_sizes tensor_split hsplit vsplit dsplit unfold
as_strided real imag view_as_real view_as_complex conj resolve_conj resolve_neg positive detach
alias data contiguous clone lift lift_fresh atleast_1d atleast_2d atleast_3d diag diag_embed
diagflat
"""
_MOVES = """
cat stack hstack vstack dstack column_stack row_stack block_diag repeat repeat_interleave tile flip
fliplr flipud rot90 roll pad constant_pad_nd reflection_pad1d reflection_pad2d replication_pad1d
replication_pad2d getitem setitem gather take take_along_dim index index_select index_put index_copy
index_fill masked_select scatter nonzero argwhere select_scatter slice_scatter diagonal_scatter
as_strided_scatter put copy embedding one_hot tril triu pixel_shuffle pixel_unshuffle
channel_shuffle native_channel_shuffle meshgrid broadcast_tensors cartesian_prod combinations
complex fill fill_diagonal zero im2col unfold_copy max_unpool1d max_unpool2d max_unpool3d
pack_padded_sequence pad_packed_sequence pad_sequence to_dense to_sparse to_sparse_csr to_sparse_csc
to_sparse_coo to_padded_tensor coalesce values indices crow_indices col_indices cpu cuda pin_memory
set resize resize_as type_as cast identity isin sparse_mask nested_tensor as_nested_tensor
nested_view_from_jagged offsets lengths narrow_copy unbind_copy
"""
_MAKING = """
zeros ones empty full zeros_like ones_like empty_like full_like new_zeros new_ones new_empty
new_full new_tensor rand randn randint rand_like randn_like randint_like randperm normal uniform
bernoulli multinomial poisson exponential geometric cauchy log_normal random arange range linspace
logspace eye tensor as_tensor asarray scalar_tensor from_numpy frombuffer tril_indices triu_indices
hann_window hamming_window blackman_window bartlett_window kaiser_window vander empty_strided
sparse_coo_tensor sparse_csr_tensor empty_permuted trunc_normal constant kaiser_uniform
kaiser_normal xavier_uniform xavier_normal orthogonal fftshift ifftshift fftfreq rfftfreq new
"""


@rule(*(f"{_VIEWS} {_MOVES} {_MAKING}").split(), shapeless=True)
def _nothing(given: Given) -> int:
    return 0
