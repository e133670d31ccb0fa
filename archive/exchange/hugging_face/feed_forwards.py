"""Feed-forward parts of configurations: dense ones by their activation, and experts."""

from __future__ import annotations

from typing import Any

from archive.architecture.decoders.parts import (
    FeedForward,
    GeGlu,
    Gelu,
    Linear,
    MixtureOfExperts,
    SwiGlu,
)
from archive.architecture.layer import Attributes
from archive.exchange.hugging_face.config import Config
from archive.exchange.hugging_face.family import Family
from archive.values import brief

_TANH = ("gelu_new", "gelu_pytorch_tanh", "gelu_fast")
_SILU = ("silu", "swish")


def dense(config: Config, family: Family) -> FeedForward:
    """Return a dense part.

    Raises:
        UsageError: Its activation has no word.
    """
    hidden = config.whole("intermediate_size")
    activation = config.get("hidden_act")
    extras: dict[str, Any] = {"bias": True} if config.flag(family.feed_forward_bias) else {}
    if activation in _SILU and family.gated:
        return SwiGlu(hidden, Attributes(extras))

    if activation in _TANH:
        extras["approximation"] = "tanh"
    elif activation != "gelu":
        raise config.refuse(
            f"the activation {brief(activation)} of {family.model_type} has no word in the decoders"
        )

    further = Attributes(extras)
    return GeGlu(hidden, further) if family.gated else Gelu(hidden, further)


def linear(config: Config, family: Family) -> Linear:
    """Return one matrix."""
    extras = {"bias": True} if config.flag(family.feed_forward_bias) else {}
    return Linear(config.whole("hidden_size"), Attributes(extras))


def experts(config: Config, family: Family) -> MixtureOfExperts:
    """Return experts, from values under the names of the function `preparing.experts_of`.

    Raises:
        UsageError: Their activation has no word.
    """
    if config.get("hidden_act") not in _SILU:
        raise config.refuse(
            f"the activation {brief(config.get('hidden_act'))} of experts of {family.model_type} has "
            "no word in the decoders"
        )

    extras: dict[str, Any] = dict(config.get("expert_settings") or {})
    if not config.flag("normalised_experts"):
        extras["routing"] = " ".join(["raw", *filter(None, [extras.get("routing")])])

    active = config.whole("active_experts")
    count = config.whole("experts")
    if active > count:
        raise config.fault("active_experts", f"at most the {count} experts")

    return MixtureOfExperts(config.whole("expert_size"), count, active, Attributes(extras))
