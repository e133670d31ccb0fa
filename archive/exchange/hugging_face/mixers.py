"""Mixers of configurations: attention with its settings, latent attention, recurrences."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from archive.architecture.decoders.parts import (
    Attention,
    GatedDelta,
    LatentAttention,
    Mamba,
    Mamba2,
)
from archive.architecture.layer import Attributes
from archive.exchange.hugging_face.config import USUAL, Config
from archive.exchange.hugging_face.family import Family
from archive.values import brief

_DEFAULT_BASE = 10_000.0
_LONGEST_SCALING = 500
_SILU = ("silu", "swish")


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
    _check_activation(config, family)
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
    _check_activation(config, family)
    channels = int(config.real("expand") * config.whole("hidden_size"))
    heads = config.whole("num_heads")
    if channels % heads:
        raise config.fault("num_heads", f"a divisor of the {channels} channels")

    size = config.get("channels_of_head")
    if size not in (None, "auto", channels // heads):
        raise config.refuse(
            f"{heads} heads of {brief(size)} channels are not the {channels} channels of the layer"
        )

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

    width = config.whole("hidden_size")
    if config.get("head_dim") is None and heads > width:
        raise config.fault("num_attention_heads", f"at most the width {width}")

    size = config.whole_or("head_dim", width // heads)
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
    rotary = Config(_rotary_values(config), {}, config.source)
    base = rotary.real("rope_theta")
    extras: dict[str, Any] = {}
    share = rotary.real("partial_rotary_factor")
    if share > 1:
        raise rotary.fault("partial_rotary_factor", "at most 1")

    if share != 1:
        extras["rotary_share"] = share

    kind = rotary.get("rope_type") or rotary.get("type") or "default"
    if not isinstance(kind, str) or not kind.isidentifier():
        raise config.refuse(f"rope_type must be a word, got {brief(kind)}")

    if kind != "default":
        extras["rotary_scaling"] = _scaling_text(kind, rotary)

    return base, extras


def _rotary_values(config: Config) -> dict[str, Any]:
    """Return the values of the rotary positions of a layer, of either form of configurations."""
    kind = config.get("mixer")
    rotary: dict[str, Any] = {"rope_theta": _DEFAULT_BASE, "partial_rotary_factor": 1.0}
    for name in rotary:
        if config.get(name) is not None:
            rotary[name] = config.get(name)

    for name in ("rope_parameters", "rope_scaling"):
        values = config.mapping(name)
        if "full_attention" in values:
            # Where layers differ, there are values for each kind of them.
            values = Config(values, {}, f"{config.source}: {name}").mapping(str(kind))

        rotary |= {key: value for key, value in values.items() if value is not None}

    return rotary


def _scaling_text(kind: str, rotary: Config) -> str:
    """Return the scaling of rotary angles as a text: `llama3 factor=32 …`.

    Raises:
        UsageError: It has far more values than any kind of scaling.
    """
    usual = {*USUAL, "rope_type", "type"}
    words = [kind]
    for name in sorted(rotary.values.keys() - usual):
        words.append(f"{name}={_scaling_value(rotary.get(name))}")

    text = " ".join(words)
    if len(text) > _LONGEST_SCALING:
        raise rotary.refuse(f"the scaling of rotary angles {brief(text)} is too long")

    return text


def _scaling_value(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.12g}"

    text = json.dumps(value)
    # A factor of each angle, as of `longrope`, is told apart and not shown.
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest() if len(text) > 20 else text


def _check_activation(config: Config, family: Family) -> None:
    activation = config.get("hidden_act")
    if activation not in _SILU:
        raise config.refuse(
            f"the activation {brief(activation)} of recurrences of {family.model_type} has no word "
            "in the decoders"
        )


def _recurrence_biases(config: Config) -> dict[str, Any]:
    extras: dict[str, Any] = _flags(config, bias="use_bias")
    if not config.flag("use_conv_bias"):
        extras["unbiased_convolution"] = True

    return extras


def _flags(config: Config, **names: str) -> dict[str, Any]:
    """Return the settings whose values are true."""
    return {setting: True for setting, name in names.items() if config.flag(name)}
