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

Published networks have more: four further words, and the settings of `FURTHER`, which no member of
the space `decoder` has.

| word               | layer                                           | units        | attributes               |
|--------------------|-------------------------------------------------|--------------|--------------------------|
| `latent_attention` | attention whose keys and values are projections | heads x      | `width`, `heads`,        |
|                    | of one short vector of each position            | size of a    | `kv_rank`, `query_rank`, |
|                    |                                                 | value        | `plain_size`,            |
|                    |                                                 |              | `rotary_size`,           |
|                    |                                                 |              | `rotary_base`            |
| `mamba`            | state-space layer of Mamba                      | channels     | `width`, `state`,        |
|                    |                                                 |              | `rank`, `kernel`         |
| `geglu`            | product of two matrices, one through GELU; a    | hidden       | `width`                  |
|                    | third matrix                                    |              |                          |
| `linear`           | one matrix, in place of a part                  | width        | `width`                  |
"""

from __future__ import annotations

from collections.abc import Mapping

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

LATENT = "latent_attention"
MAMBA = "mamba"
GEGLU = "geglu"
LINEAR = "linear"

MIXERS = (ATTENTION, SLIDING, GATED_DELTA, MAMBA2)
FEED_FORWARDS = (GELU, SWIGLU, MOE)
"""Parts of the space."""

ALL_MIXERS = (*MIXERS, LATENT, MAMBA)
ALL_FEED_FORWARDS = (*FEED_FORWARDS, GEGLU, LINEAR)
"""Parts of published networks as well."""

EPSILON = 1e-6
"""Number that a norm without this setting adds to a mean square."""

FLAG = "flag"
WHOLE = "whole"
REAL = "real"
TEXT = "text"
"""Kinds of further settings: true, a whole number >= 1, a number, a text."""

_OF_ATTENTION = {
    # Biases of the queries, keys and values, and of the output: u + 2 g p, and d.
    "qkv_bias": FLAG,
    "output_bias": FLAG,
    # Norm of queries and keys: `head`, one scale for all heads of each, 2 p; `layer`, a layer norm
    # with a bias likewise, 4 p; `all`, over all heads of each, u + g p.
    "query_key_norm": TEXT,
    # In place of a rotary base: `none`, or `alibi`, a slope of each head.
    "positions": TEXT,
    # Share of a head's numbers that turn, and the scaling of the angles for longer sequences.
    "rotary_share": REAL,
    "rotary_scaling": TEXT,
    # Factor of the scores in place of p ** -0.5, and c of c tanh(score / c).
    "scale": REAL,
    "soft_cap": REAL,
    # A trained score of each head that no value has: h.
    "sinks": FLAG,
    # Sigmoid of a matrix of the input, by which the output is multiplied: d u.
    "output_gate": FLAG,
}

_BIASES = {"bias": FLAG}

FURTHER: Mapping[str, Mapping[str, str]] = {
    EMBEDDING: {
        # Number of learned vectors of positions, and a factor of the vectors of tokens.
        "positions": WHOLE,
        "scale": REAL,
    },
    NORM: {
        # `layer`: a layer norm; `bias` has a number for each unit, `unscaled` has no scale.
        "kind": TEXT,
        "bias": FLAG,
        "unscaled": FLAG,
        "epsilon": REAL,
    },
    # Factor of the part that is added to the stream.
    ADD: {"scale": REAL},
    HEAD: {"bias": FLAG, "scale": REAL, "soft_cap": REAL},
    ATTENTION: _OF_ATTENTION,
    SLIDING: _OF_ATTENTION,
    LATENT: {"bias": FLAG, "rotary_scaling": TEXT},
    GATED_DELTA: {"key_heads": WHOLE, "key_size": WHOLE},
    MAMBA2: {"groups": WHOLE, "bias": FLAG, "unbiased_convolution": FLAG},
    # `norms`: of the step, and of the two vectors that write and read the state.
    MAMBA: {"bias": FLAG, "unbiased_convolution": FLAG, "norms": FLAG},
    # `approximation`: `tanh`, of GELU.
    GELU: {"bias": FLAG, "approximation": TEXT},
    GEGLU: {"bias": FLAG, "approximation": TEXT},
    SWIGLU: {"bias": FLAG},
    LINEAR: {"bias": FLAG},
    MOE: {
        # Hidden neurons of the experts that every token uses, their biases, and a weight of their
        # output.
        "shared": WHOLE,
        "shared_bias": FLAG,
        "shared_gate": FLAG,
        "bias": FLAG,
        "router_bias": FLAG,
        # `sigmoid`: scores of the router; `raw`: weights of the chosen experts sum to less than 1;
        # `raw sigmoid`: both.
        "routing": TEXT,
        # Factor of the experts' sum; groups of experts, and groups of which a token uses experts.
        "scale": REAL,
        "groups": WHOLE,
        "active_groups": WHOLE,
        # Largest value in an expert, behind which it is cut off.
        "limit": REAL,
    },
}
"""Settings of layers that no member of the space has, and their kinds. A layer that has none of them
is a layer of the space."""

MIXER = "mixer"
FEED_FORWARD = "feed-forward"
"""Groups of the operations of a block."""

DECODER = define(
    NAME,
    [
        Operation(EMBEDDING, "embedding", has_units=True),
        *(Operation(name, MIXER, has_units=True) for name in ALL_MIXERS),
        *(Operation(name, FEED_FORWARD, has_units=True) for name in ALL_FEED_FORWARDS),
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
        "kind",
        "query_key_norm",
        "positions",
        "rotary_share",
        "shared",
    ),
    # Full and sliding attention differ in their reach alone, the two recurrences in their update.
    tree={
        "mixers": {
            "weight": 0.5,
            "children": {
                "softmax": {
                    "weight": 0.35,
                    "children": {ATTENTION: 0.15, SLIDING: 0.15, LATENT: 0.15},
                },
                "recurrence": {
                    "weight": 0.35,
                    "children": {GATED_DELTA: 0.15, MAMBA2: 0.15, MAMBA: 0.15},
                },
            },
        },
        "feed-forward": {
            "weight": 0.5,
            "children": {
                "dense": {"weight": 0.35, "children": {GELU: 0.15, SWIGLU: 0.15, GEGLU: 0.15}},
                LINEAR: 0.5,
                MOE: 0.5,
            },
        },
        NORM: 1.0,
        ADD: 1.0,
        EMBEDDING: 1.0,
        HEAD: 1.0,
    },
)
