"""The vocabulary of the space `decoder`: the parts of a language model's block.

| word                | layer                                          | units         | attributes                 |
|---------------------|------------------------------------------------|---------------|----------------------------|
| `embedding`         | vector of each token                           | width         | `vocabulary`               |
| `norm`              | division by the root mean square, with a scale | width         |                            |
| `attention`         | causal attention with rotary positions         | heads x size  | `width`, `heads`,          |
|                     |                                                |               | `kv_heads`, `rotary_base`  |
| `sliding_attention` | the same over the last `window` positions      | heads x size  | the same, and `window`     |
| `gated_delta`       | linear attention with a gated delta rule       | heads x size  | `width`, `heads`, `kernel` |
| `mamba2`            | state-space layer of Mamba-2                   | heads x size  | `width`, `heads`, `state`, |
|                     |                                                |               | `kernel`                   |
| `gelu`              | matrix, GELU, matrix                           | hidden        | `width`                    |
| `swiglu`            | product of two matrices, one through SiLU;     | hidden        | `width`                    |
|                     | a third matrix                                 |               |                            |
| `moe`               | the `active` best of `experts`, each a         | hidden of one | `width`, `experts`,        |
|                     | `swiglu`                                       | expert        | `active`                   |
| `add`               | sum of its inputs                              | width         |                            |
| `head`              | logits of the next token                       | vocabulary    | `width`, `tied`: the       |
|                     |                                                |               | matrix is the embedding's  |

`width` is the width of the residual stream. The parameters of a layer follow from the layer alone.
"""

from __future__ import annotations

from archive.architecture.operations import Operation, define

NAME = "decoder"

EMBEDDING = "embedding"
NORM = "norm"
ADD = "add"
HEAD = "head"

ATTENTION = "attention"
SLIDING = "sliding_attention"
GATED_DELTA = "gated_delta"
MAMBA2 = "mamba2"
GELU = "gelu"
SWIGLU = "swiglu"
MOE = "moe"

MIXERS = (ATTENTION, SLIDING, GATED_DELTA, MAMBA2)
FEED_FORWARDS = (GELU, SWIGLU, MOE)

MIXER = "mixer"
FEED_FORWARD = "feed-forward"
"""Groups of the operations of a block."""

DECODER = define(
    NAME,
    [
        Operation(EMBEDDING, "embedding", has_units=True),
        *(Operation(name, MIXER, has_units=True) for name in MIXERS),
        *(Operation(name, FEED_FORWARD, has_units=True) for name in FEED_FORWARDS),
        Operation(NORM, "norm", has_units=True),
        Operation(ADD, "sum", has_units=True),
        Operation(HEAD, "head", has_units=True),
    ],
    attributes=True,
    settings=(
        "heads",
        "kv_heads",
        "window",
        "state",
        "rotary_base",
        "experts",
        "active",
        "tied",
    ),
    # Full and sliding attention differ in their reach alone, the two recurrences in their update.
    tree={
        "mixers": {
            "weight": 0.5,
            "children": {
                "softmax": {"weight": 0.35, "children": {ATTENTION: 0.15, SLIDING: 0.15}},
                "recurrence": {"weight": 0.35, "children": {GATED_DELTA: 0.15, MAMBA2: 0.15}},
            },
        },
        "feed-forward": {
            "weight": 0.5,
            "children": {
                "dense": {"weight": 0.35, "children": {GELU: 0.15, SWIGLU: 0.15}},
                MOE: 0.5,
            },
        },
        NORM: 1.0,
        ADD: 1.0,
        EMBEDDING: 1.0,
        HEAD: 1.0,
    },
)
