"""Signatures of PyTorch's operations, from which the file of the vocabulary is made.

python -m archive.trainer.intake.signatures archive/architecture/aten/signatures.txt
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch

_DIFFERENT_IN_TRAINING = (
    "batch_norm",
    "dropout",
    "feature_dropout",
    "alpha_dropout",
    "feature_alpha_dropout",
    "instance_norm",
    "rrelu",
)
"""Operations that behave differently in training, which their decompositions would freeze."""

_LAYERS = (
    "linear",
    "scaled_dot_product_attention",
    "prelu",
    "roll",
    "silu",
    "hardswish",
    "hardsigmoid",
    "softplus",
    "mish",
)
"""Operations that are one layer of a network, and several operations of the core set."""

_INDEXED = (
    "upsample_nearest1d.vec",
    "upsample_nearest3d.vec",
    "upsample_linear1d.vec",
    "upsample_trilinear3d.vec",
    "upsample_bicubic2d.vec",
    "_upsample_nearest_exact1d.vec",
    "_upsample_nearest_exact2d.vec",
    "_upsample_nearest_exact3d.vec",
    "reflection_pad1d",
    "reflection_pad2d",
    "reflection_pad3d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "pad",
    "im2col",
)
"""Interpolations, paddings and windows.

The core set computes them by indices and weights, which would be fixed to the lengths at the
import. `pad` is kept where it is circular.
"""

_OTHERS = (
    "adaptive_max_pool2d",
    "bernoulli.p",
    "erfc",
    "_upsample_bicubic2d_aa.vec",
    "_upsample_bilinear2d_aa.vec",
    "unfold",
    "histc",
    "adaptive_max_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "_trilinear",
)
"""Other operations, most of which have no decomposition."""

_RANDOM = ("exponential", "uniform", "normal_functional", "rand_like", "randn_like")
"""Operations with random numbers."""

KEPT = _DIFFERENT_IN_TRAINING + _LAYERS + _INDEXED + _OTHERS + _RANDOM
"""Operations beside the core set."""

DECOMPOSED = (
    "batch_norm",
    "instance_norm",
    "rrelu",
    "pad",
    "dropout",
    "feature_dropout",
    "alpha_dropout",
    "feature_alpha_dropout",
)
"""Operations of `KEPT` that are decomposed, unless they are stand-ins
(`archive.trainer.intake.stand_ins`)."""

_LEFT_OUT = re.compile(r"_backward$|^sym_|^resize_$|^empty_strided$|^_local_scalar_dense$")


def signatures() -> list[str]:
    """Return the signatures of the core set and of `KEPT`, sorted.

    Left out are gradients, writes into given tensors, and operations that return no tensor.
    """
    lines = {_line(name) for name in KEPT}
    for whole in torch._C._dispatch_get_all_op_names():
        namespace, _, name = whole.partition("::")
        base, _, overload = name.partition(".")
        if namespace == "aten" and overload != "out" and not _LEFT_OUT.search(base):
            operation = getattr(getattr(torch.ops.aten, base), overload or "default")
            if torch.Tag.core in operation.tags:
                lines.add(_line(name))

    return sorted(lines)


def _line(name: str) -> str:
    base, _, overload = name.partition(".")
    schema = str(getattr(getattr(torch.ops.aten, base), overload or "default")._schema)
    # Marks of aliases, as in Tensor(a!), matter to a compiler only.
    return re.sub(r"\((?:\w+!?|\w+ -> \*)\)", "", schema.removeprefix("aten::"))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(signatures()) + "\n", encoding="utf-8")
