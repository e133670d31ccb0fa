"""Layers of configurations whose layers differ: their kinds, and values of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archive.exchange.hugging_face.config import Config
from archive.exchange.hugging_face.family import LayerValues

FULL = "full_attention"
SLIDING = "sliding_attention"
RECURRENT = "linear_attention"
NONE = "none"
DENSE = "dense"
EXPERTS = "experts"
LINEAR = "linear"
"""Kinds of mixers and of feed-forward parts."""


def alike(config: Config) -> list[LayerValues]:
    """Return layers that are alike: `layer_types`, or full attention."""
    # Classes without windows ignore the size of one.
    return windowed(config.replaced({"sliding_window": None}))


def windowed(config: Config) -> list[LayerValues]:
    """Return layers that are alike: `layer_types`, or attention, with a window if it is set."""
    kinds = kinds_of(config)
    return [{"mixer": kind} for kind in kinds]


def kinds_of(config: Config) -> list[str]:
    """Return the mixers of a configuration whose window is of all layers."""
    count = config.whole("num_hidden_layers")
    if config.get("layer_types") is not None:
        return config.texts("layer_types", count)

    return [FULL if config.get("sliding_window") is None else SLIDING] * count


def recurrent(config: Config) -> list[LayerValues]:
    """Return layers of a recurrence alone."""
    layer = {"mixer": RECURRENT, "feed_forward": NONE}
    return [layer] * config.whole("num_hidden_layers")


def late_windows(config: Config) -> list[LayerValues]:
    """Return Qwen's layers: the last ones have windows where windows are used."""
    count = config.whole("num_hidden_layers")
    if not config.flag("use_sliding_window"):
        return [{"mixer": FULL}] * count

    if config.get("layer_types") is not None:
        return [{"mixer": kind} for kind in config.texts("layer_types", count)]

    first = config.count("max_window_layers")
    return [{"mixer": SLIDING if index >= first else FULL} for index in range(count)]


def every(config: Config, period: int) -> list[LayerValues]:
    """Return layers with windows, but for every so many of full attention."""
    count = config.whole("num_hidden_layers")
    if config.get("layer_types") is not None:
        return [{"mixer": kind} for kind in config.texts("layer_types", count)]

    kinds = [FULL if (index + 1) % period == 0 else SLIDING for index in range(count)]
    return [{"mixer": kind} for kind in kinds]


def gemma3(config: Config) -> list[LayerValues]:
    """Return Gemma 3's layers; those with windows have a rotary base of their own."""
    layers: list[LayerValues] = []
    for layer in every(config, config.whole_or("sliding_window_pattern", 6)):
        values = dict(layer)
        if values["mixer"] == SLIDING and config.get("rope_parameters") is None:
            values |= {"rope_theta": config.get("rope_local_base_freq"), "rope_scaling": None}

        layers.append(values)

    return layers


def olmo3(config: Config) -> list[LayerValues]:
    """Return OLMo 3's layers; the angles of those with windows are not scaled."""
    layers: list[LayerValues] = []
    for layer in every(config, 4):
        scaling = {"rope_scaling": None} if layer["mixer"] == SLIDING else {}
        layers.append({**layer, **scaling})

    return layers


def smollm3(config: Config) -> list[LayerValues]:
    """Return SmolLM 3's layers: every fourth has no positions."""
    count = config.whole("num_hidden_layers")
    turning = config.numbers("no_rope_layers")
    if not turning:
        interval = config.whole_or("no_rope_layer_interval", 4)
        turning = [int((index + 1) % interval != 0) for index in range(count)]

    if len(turning) != count:
        raise config.fault("no_rope_layers", f"one number for each of the {count} layers")

    layers: list[LayerValues] = []
    has_windows = config.flag("use_sliding_window") and config.get("sliding_window") is not None
    for turns in turning:
        kind = SLIDING if has_windows and not turns else FULL
        layers.append({"mixer": kind, "positions": None if turns else "none"})

    return layers


def jamba(config: Config) -> list[LayerValues]:
    """Return Jamba's layers: attention and experts in periods."""
    layers: list[LayerValues] = []
    for index in range(config.whole("num_hidden_layers")):
        attends = _is_in_period(config, index, "attn_layer")
        has_experts = _is_in_period(config, index, "expert_layer") and config.whole("experts") > 1
        feed_forward = EXPERTS if has_experts else DENSE
        layers.append({"mixer": FULL if attends else RECURRENT, "feed_forward": feed_forward})

    return layers


def bamba(config: Config) -> list[LayerValues]:
    """Return Bamba's layers: attention in some."""
    attending = config.numbers("attn_layer_indices")
    count = config.whole("num_hidden_layers")
    return [{"mixer": FULL if index in attending else RECURRENT} for index in range(count)]


def dense_first(config: Config) -> list[LayerValues]:
    """Return DeepSeek's layers: the first are dense."""
    if config.whole_or("moe_layer_freq", 1) != 1:
        raise config.refuse(
            "experts in some of the later layers (moe_layer_freq) have no form here"
        )

    first = config.count("first_k_dense_replace")
    layers: list[LayerValues] = []
    for index in range(config.whole("num_hidden_layers")):
        layers.append({"mixer": FULL, "feed_forward": DENSE if index < first else EXPERTS})

    return layers


def all_experts(config: Config) -> list[LayerValues]:
    """Return layers with experts, and the usual mixers."""
    return [{"mixer": kind, "feed_forward": EXPERTS} for kind in kinds_of(config)]


def sparse_steps(config: Config) -> list[LayerValues]:
    """Return Qwen's layers with experts in every so many."""
    step = config.whole_or("decoder_sparse_step", 1)
    dense_layers = config.numbers("mlp_only_layers")
    layers: list[LayerValues] = []
    for index, layer in enumerate(late_windows(config)):
        has_experts = index not in dense_layers and (index + 1) % step == 0
        layers.append({**layer, "feed_forward": EXPERTS if has_experts else DENSE})

    return layers


def qwen3_next(config: Config) -> list[LayerValues]:
    """Return Qwen3-Next's layers: a gated delta rule in three of four."""
    count = config.whole("num_hidden_layers")
    if config.get("layer_types") is not None:
        kinds = config.texts("layer_types", count)
    else:
        interval = config.whole_or("full_attention_interval", 4)
        kinds = [FULL if (index + 1) % interval == 0 else RECURRENT for index in range(count)]

    layers: list[LayerValues] = []
    for kind, layer in zip(kinds, sparse_steps(config), strict=True):
        layers.append({**layer, "mixer": kind})

    return layers


def block_configs(config: Config) -> list[LayerValues]:
    """Return the layers of NVIDIA's heterogeneous configurations: `block_configs`.

    Raises:
        UsageError: They cannot be read, or have parts without a form.
    """
    blocks = config.get("block_configs")
    count = config.whole("num_hidden_layers")
    if not isinstance(blocks, list) or len(blocks) != count:
        raise config.fault("block_configs", f"a list of the {count} layers")

    layers: list[LayerValues] = []
    for number, block in enumerate(blocks, 1):
        parts = block if isinstance(block, Mapping) else {}
        mixing = _block_part(config, parts, "attention", number)
        feeding = _block_part(config, parts, "ffn", number)
        layers.append({**_block_mixer(config, mixing), **_block_feed_forward(config, feeding)})

    return layers


def _block_part(config: Config, block: Mapping[str, Any], name: str, number: int) -> Config:
    part = block.get(name)
    if not isinstance(part, Mapping):
        raise config.refuse(f"block {number} of block_configs has no {name}")

    source = f"{config.source}: {name} of block {number}"
    read = Config(part, {}, source)
    for unreadable in ("sparsify", "num_sink_tokens", "moe", "mamba", "llama4"):
        if part.get(unreadable):
            raise read.refuse(f"{unreadable} has no form here")

    return read


def _block_mixer(config: Config, attention: Config) -> dict[str, Any]:
    if attention.flag("no_op"):
        return {"mixer": NONE}

    if attention.flag("replace_with_linear"):
        return {"mixer": LINEAR}

    values: dict[str, Any] = {"mixer": FULL}
    if attention.get("n_heads_in_group") is not None:
        heads = config.whole("num_attention_heads")
        in_group = attention.whole("n_heads_in_group")
        if heads % in_group:
            raise attention.fault("n_heads_in_group", f"a divisor of the {heads} heads")

        values["num_key_value_heads"] = heads // in_group
    elif attention.get("num_key_value_heads") is not None:
        values["num_key_value_heads"] = attention.whole("num_key_value_heads")

    if attention.get("window_length") is not None:
        values |= {"mixer": SLIDING, "sliding_window": attention.whole("window_length")}

    return values


def _block_feed_forward(config: Config, feed_forward: Config) -> dict[str, Any]:
    if feed_forward.flag("no_op"):
        return {"feed_forward": NONE}

    if feed_forward.flag("replace_with_linear"):
        return {"feed_forward": LINEAR}

    if feed_forward.get("intermediate_size") is not None:
        return {"intermediate_size": feed_forward.whole("intermediate_size")}

    # Two thirds of the multiple, since there are three matrices; in steps of 256.
    hidden = int(2 * feed_forward.real("ffn_mult") * config.whole("hidden_size") / 3)
    return {"intermediate_size": -(-hidden // 256) * 256}


def _is_in_period(config: Config, index: int, name: str) -> bool:
    period = config.whole(f"{name}_period")
    return index % period == config.count(f"{name}_offset")
