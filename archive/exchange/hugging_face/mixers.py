"""Mixers of configurations: attention with its settings, latent attention, recurrences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from archive.architecture.decoders.parts import (
    Attention,
    GatedDelta,
    LatentAttention,
    Mamba,
    Mamba2,
)
from archive.architecture.layer import Attributes
from archive.exchange.hugging_face.config import Config
from archive.exchange.hugging_face.family import Family

_DEFAULT_BASE = 10_000.0


def attention(config: Config, family: Family) -> Attention:
    """Return full attention."""
    return _attention(config, family, window=None)


def sliding_attention(config: Config, family: Family) -> Attention:
    """Return attention with a window."""
    return _attention(config, family, window=config.whole("sliding_window"))


def latent_attention(config: Config, family: Family) -> LatentAttention:
    """Return latent attention, as DeepSeek's."""
    base, rotary = _rotary(config)
    extras: dict[str, Any] = {}
    if scaling := rotary.get("rotary_scaling"):
        extras["rotary_scaling"] = scaling

    if config.flag(family.qkv_bias):
        extras["bias"] = True

    query_rank = 0 if config.get("q_lora_rank") is None else config.whole("q_lora_rank")
    return LatentAttention(
        config.whole("num_attention_heads"),
        kv_rank=config.whole("kv_lora_rank"),
        query_rank=query_rank,
        plain_size=config.whole("qk_nope_head_dim"),
        rotary_size=config.whole("qk_rope_head_dim"),
        value_size=config.whole("v_head_dim"),
        rotary_base=base,
        extras=Attributes(extras),
    )


def gated_delta(config: Config, family: Family) -> GatedDelta:
    """Return a gated delta rule, as Qwen3-Next's."""
    del family
    heads = config.whole("linear_num_value_heads")
    size = config.whole("linear_value_head_dim")
    key_heads = config.whole("linear_num_key_heads")
    key_size = config.whole("linear_key_head_dim")
    extras = {}
    if key_heads != heads:
        extras["key_heads"] = key_heads

    if key_size != size:
        extras["key_size"] = key_size

    return GatedDelta(heads, size, config.whole("linear_conv_kernel_dim"), Attributes(extras))


def mamba(config: Config, family: Family) -> Mamba:
    """Return a state-space layer of Mamba."""
    del family
    width = config.whole("hidden_size")
    rank = config.get("time_step_rank")
    if rank in (None, "auto"):
        rank = math.ceil(width / 16)
    else:
        rank = config.whole("time_step_rank")

    return Mamba(
        int(config.real("expand") * width),
        state=config.whole("state_size"),
        rank=rank,
        kernel=config.whole("conv_kernel"),
        extras=Attributes({**_recurrence_biases(config), **_flags(config, norms="mamba_norms")}),
    )


def mamba2(config: Config, family: Family) -> Mamba2:
    """Return a state-space layer of Mamba-2."""
    del family
    channels = int(config.real("expand") * config.whole("hidden_size"))
    heads = config.whole("num_heads")
    if channels % heads:
        raise config.fault("num_heads", f"a divisor of the {channels} channels")

    extras = _recurrence_biases(config)
    groups = config.whole("n_groups")
    if groups > 1:
        extras["groups"] = groups

    return Mamba2(
        heads,
        channels // heads,
        config.whole("state_size"),
        config.whole("conv_kernel"),
        Attributes(extras),
    )


def _attention(config: Config, family: Family, *, window: int | None) -> Attention:
    heads = config.whole("num_attention_heads")
    kv_heads = config.whole_or("num_key_value_heads", heads)
    if heads % kv_heads:
        raise config.fault("num_key_value_heads", f"a divisor of the {heads} heads")

    size = config.whole_or("head_dim", config.whole("hidden_size") // heads)
    extras: dict[str, Any] = dict(family.attention)
    if config.flag(family.qkv_bias):
        extras["qkv_bias"] = True

    if config.flag(family.output_bias):
        extras["output_bias"] = True

    if family.query_key_norm:
        extras["query_key_norm"] = family.query_key_norm

    if config.get("attention_scale") is not None:
        scale = config.real("attention_scale")
        if not math.isclose(scale, size**-0.5):
            extras["scale"] = scale

    if config.get("attn_logit_softcapping") is not None:
        extras["soft_cap"] = config.real("attn_logit_softcapping")

    base = 0.0
    if positions := config.get("positions"):
        extras["positions"] = positions
    else:
        base, rotary = _rotary(config)
        extras |= rotary

    return Attention(heads, kv_heads, size, base, window, Attributes(extras))


def _rotary(config: Config) -> tuple[float, dict[str, Any]]:
    """Return the base of the rotary frequencies, and further settings."""
    rotary = _rotary_values(config)
    base = Config(rotary, {}, config.source).real("rope_theta")
    extras: dict[str, Any] = {}
    share = rotary.get("partial_rotary_factor") or config.real("partial_rotary_factor")
    if share != 1:
        extras["rotary_share"] = float(share)

    kind = rotary.get("rope_type") or rotary.get("type") or "default"
    if kind != "default":
        extras["rotary_scaling"] = _scaling_text(str(kind), rotary)

    return base, extras


def _rotary_values(config: Config) -> dict[str, Any]:
    """Return the values of the rotary positions of a layer, of either form of configurations."""
    kind = config.get("mixer")
    rotary: dict[str, Any] = {}
    for name in ("rope_parameters", "rope_scaling"):
        values = config.get(name)
        if isinstance(values, Mapping):
            # Where layers differ, there are values for each kind of them.
            values = values.get(kind, {} if "full_attention" in values else values)
            rotary |= {key: value for key, value in values.items() if value is not None}

    if "rope_theta" not in rotary:
        rotary["rope_theta"] = config.get("rope_theta") or _DEFAULT_BASE

    return rotary


def _scaling_text(kind: str, rotary: Mapping[str, Any]) -> str:
    """Return the scaling of rotary angles as a text: `llama3 factor=32 …`."""
    words = [kind]
    for name in sorted(
        rotary.keys() - {"rope_type", "type", "rope_theta", "partial_rotary_factor"}
    ):
        value = rotary[name]
        if isinstance(value, int | float) and not isinstance(value, bool):
            words.append(f"{name}={value:g}")

    return " ".join(words)


def _recurrence_biases(config: Config) -> dict[str, Any]:
    extras: dict[str, Any] = _flags(config, bias="use_bias")
    if not config.flag("use_conv_bias"):
        extras["unbiased_convolution"] = True

    return extras


def _flags(config: Config, **names: str) -> dict[str, Any]:
    """Return the settings whose values are true."""
    return {setting: True for setting, name in names.items() if config.flag(name)}
