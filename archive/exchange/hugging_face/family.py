"""A family of published models: what its configurations leave unsaid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from archive.architecture.decoders.design import Norm
from archive.architecture.decoders.parts import FeedForward, Mixer
from archive.exchange.hugging_face.config import Config

LayerValues = Mapping[str, Any]
"""Values of one layer in place of the configuration's; `mixer` and `feed_forward` are its kinds."""


@dataclass(frozen=True)
class Family:
    """A family of models.

    Flags are values, or names of values of the configuration.

    Attributes:
        model_type: Its name in configurations.
        causal_class: Its class of language models in `transformers`; empty without one.
        defaults: Values that its configurations may leave out.
        prepare: Returns further values, under usual names, from a configuration.
        layers: Returns the values of each layer.
        mixers: Readers of the mixers, by kind.
        feed_forwards: Readers of the feed-forward parts, by kind.
        norm: Kind of its norms: `rms`, `layer`, or `unscaled`, a layer norm without numbers.
        epsilon: Name of the value that norms add to a square.
        norms: Places of a block's norms.
        parallel: Whether both parts of a block read the same input.
        qkv_bias: Whether queries, keys and values have biases.
        output_bias: Whether the output of attention has one.
        query_key_norm: Norm of queries and keys (`archive.architecture.decoders.vocabulary`).
        attention: Further settings of attention that all members have.
        feed_forward_bias: Whether feed-forward parts have biases.
        gated: Whether dense feed-forward parts have a gate.
        embedding: Returns further settings of the embedding.
        residual: Returns further settings of the sums.
        head: Returns further settings of the head.
    """

    model_type: str
    causal_class: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Config], Mapping[str, Any]] | None = None
    layers: Callable[[Config], list[LayerValues]] | None = None
    mixers: Mapping[str, Callable[[Config, Family], Mixer]] = field(default_factory=dict)
    feed_forwards: Mapping[str, Callable[[Config, Family], FeedForward]] = field(
        default_factory=dict
    )
    norm: Literal["rms", "layer", "unscaled"] = "rms"
    epsilon: str = "rms_norm_eps"
    norms: Norm = "pre"
    parallel: bool | str = False
    qkv_bias: bool | str = False
    output_bias: bool | str = False
    query_key_norm: str = ""
    attention: Mapping[str, Any] = field(default_factory=dict)
    feed_forward_bias: bool | str = False
    gated: bool = True
    embedding: Callable[[Config], Mapping[str, Any]] | None = None
    residual: Callable[[Config], Mapping[str, Any]] | None = None
    head: Callable[[Config], Mapping[str, Any]] | None = None
