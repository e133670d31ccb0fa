"""The vocabulary of the open space `torch`: PyTorch's operations, by their role in a network.

The words come from `signatures.txt`: the core set of ATen, to which PyTorch reduces every model,
and the few beside it that are one layer of a network or behave differently in training. Further
ones:

| word                       | meaning                                                            |
|----------------------------|--------------------------------------------------------------------|
| `getitem`                  | an output other than the first; one of several inputs              |
| `parameter`                | a trained tensor outside of layers, such as a scale                |
| `constant`                 | a tensor that the model fixes                                      |
| `by_mode`                  | the first input in training, the second in evaluation              |
| `detach`                   | the same values, without gradients                                 |
| `lstm`, `gru`, `rnn`       | a recurrent layer with all its layers and directions (`recurrent`) |
| `block_start`, `block_end` | ends of a repeated block, with other weights each time             |

The input of a network is `ip`, whose attribute `input` has the shapes. It also feeds layers without
inputs, such as parameters, by edges without arguments: so every layer is on a path from the input
to the output.
"""

from __future__ import annotations

from collections.abc import Iterable

from archive.architecture.aten.signature import signatures
from archive.architecture.operations import Operation, define

NAME = "torch"

GROUPS: dict[str, str] = {
    "conv": "convolution",
    "fc": "linear addmm mm",
    "recurrent": "lstm gru rnn",
    "embedding": "embedding _embedding_bag",
    "pool": (
        "max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d "
        "avg_pool3d adaptive_avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool3d "
        "adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d"
    ),
    "norm": (
        "batch_norm instance_norm native_layer_norm native_group_norm "
        "_native_batch_norm_legit _native_batch_norm_legit_no_training"
    ),
    "rectifier": "relu leaky_relu elu gelu silu hardswish hardtanh softplus mish prelu rrelu",
    "sigmoid": "sigmoid tanh hardsigmoid",
    "attention": "scaled_dot_product_attention bmm _softmax _log_softmax",
    "dropout": "dropout feature_dropout alpha_dropout feature_alpha_dropout native_dropout",
    "reduction": (
        "amax amin any argmax argmin cumsum histc max mean min prod sum var topk sort "
        "_cdist_forward _pdist_forward"
    ),
    "shape": (
        "alias as_strided cat clone col2im constant_pad_nd copy diagonal expand flip "
        "im2col pad permute reflection_pad1d reflection_pad2d reflection_pad3d repeat "
        "replication_pad1d replication_pad2d replication_pad3d roll select select_scatter "
        "slice slice_scatter split_with_sizes squeeze unfold unsqueeze view _to_copy"
    ),
    "index": (
        "gather index index_put index_select masked_scatter nonzero scatter scatter_add "
        "scatter_reduce where grid_sampler_2d upsample_nearest1d upsample_nearest2d "
        "upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
        "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d "
        "upsample_bicubic2d _upsample_bicubic2d_aa _upsample_bilinear2d_aa"
    ),
    "source": (
        "arange empty full full_like rand rand_like randn randn_like randperm "
        "scalar_tensor bernoulli exponential uniform normal_functional parameter constant"
    ),
    "structure": "getitem by_mode detach block_start block_end",
}
"""Group to its operations; all others compute element by element."""

ELEMENTWISE = "elementwise"

COMMUTATIVE = frozenset(
    "add mul maximum minimum eq ne logical_and logical_or logical_xor "
    "bitwise_and bitwise_or bitwise_xor".split()
)
"""Operations of two inputs in either order: both edges have the argument 0."""


def _operations() -> Iterable[Operation]:
    group: dict[str, str] = {}
    for group_name, names in GROUPS.items():
        group |= dict.fromkeys(names.split(), group_name)

    assert group.keys() <= signatures().keys(), group.keys() - signatures().keys()
    for name in sorted(signatures()):
        yield Operation(name, group.get(name, ELEMENTWISE))


TORCH = define(NAME, _operations(), attributes=True, arguments=True)
