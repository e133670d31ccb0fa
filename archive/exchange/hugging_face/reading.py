"""A configuration of a published model as a decoder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archive.architecture.codec import from_json, to_json
from archive.architecture.codec_checks import MOST_LAYERS
from archive.architecture.decoders.design import (
    Block,
    Design,
    Norm,
    StreamSettings,
    design_of,
)
from archive.architecture.decoders.parts import FeedForward, Linear, Mixer
from archive.architecture.decoders.vocabulary import EPSILON
from archive.architecture.layer import Attributes
from archive.errors import CodecError, InvalidArchitectureError, UsageError
from archive.exchange.hugging_face import feed_forwards, layers, mixers
from archive.exchange.hugging_face.config import Config
from archive.exchange.hugging_face.families import ALIASES, FAMILIES, REFUSED
from archive.exchange.hugging_face.family import Family, LayerValues

CONFIG_FILE = "config.json"
_PUBLIC_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


@dataclass(frozen=True)
class PublishedModel:
    """A published model.

    Attributes:
        name: Its name; empty where the configuration has none.
        model_type: Its family.
        causal_class: Class of `transformers` that builds it; empty without one.
        design: The decoder.
        notes: What was left out of a configuration.
    """

    name: str
    model_type: str
    causal_class: str
    design: Design
    notes: tuple[str, ...] = ()


def read_file(path: Path) -> dict[str, Any]:
    """Return the values of a `config.json`, or of the one in a folder.

    Raises:
        UsageError: It cannot be read, or holds no configuration.
    """
    file = path / CONFIG_FILE if path.is_dir() else path
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"no configuration can be read from {file}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"no configuration can be read from {file}: it is no JSON") from None

    if not is_config(values):
        raise UsageError(f"{file} must hold a JSON object with a model_type, as a config.json does")

    return dict(values)


def is_config(values: object) -> bool:
    """Return whether values are a configuration of a model."""
    return isinstance(values, Mapping) and isinstance(values.get("model_type"), str)


def read_config(values: Mapping[str, Any], source: str) -> PublishedModel:
    """Return the decoder of a configuration.

    Args:
        values: The configuration; of a model of several kinds of input, its part of language.
        source: The file or the name, for messages.

    Raises:
        UsageError: Its family is unknown or does not fit, or a value is missing or wrong.
    """
    notes: list[str] = []
    name = _public_name(values.get("_name_or_path"))
    text = values.get("text_config")
    if isinstance(text, Mapping):
        notes.append(f"the part of language alone, of a {values['model_type']}")
        # Some configurations name the family outside alone.
        values = {"model_type": values["model_type"], **text}

    family = _family_of(values, source)
    config = Config(values, family.defaults, source)
    if family.prepare is not None:
        config = config.replaced(family.prepare(config))

    design = _design(config, family)
    _check(design, source)
    return PublishedModel(
        name=name,
        model_type=family.model_type,
        causal_class=family.causal_class,
        design=design,
        notes=tuple(notes),
    )


def _public_name(name: object) -> str:
    """Return the name of a model, as `meta-llama/Llama-3.2-1B`; empty for anything else."""
    # A path of the person who trained the model is nobody else's business.
    return name if isinstance(name, str) and _PUBLIC_NAME.fullmatch(name) else ""


def _check(design: Design, source: str) -> None:
    """Refuse a design that the archive could not read again."""
    try:
        design_of(from_json(to_json(design.graph())))
    except (CodecError, InvalidArchitectureError) as error:
        raise UsageError(f"{source}: {error}") from None


def _family_of(values: Mapping[str, Any], source: str) -> Family:
    model_type = str(values.get("model_type"))
    if values.get("is_encoder_decoder"):
        raise UsageError(f"{source}: {model_type} has an encoder, which no decoder has")

    if model_type in REFUSED:
        raise UsageError(f"{source}: {model_type} does not fit: {REFUSED[model_type]}")

    family = FAMILIES.get(ALIASES.get(model_type, model_type))
    if family is None:
        raise UsageError(
            f"{source}: {model_type!r:.60} is none of the families {', '.join(sorted(FAMILIES))}"
        )

    return family


def _design(config: Config, family: Family) -> Design:
    width = config.whole("hidden_size")
    if config.whole("num_hidden_layers") > MOST_LAYERS:
        raise config.fault("num_hidden_layers", f"at most {MOST_LAYERS}")

    # A family may have two kinds of blocks.
    parallel = config.flag(family.parallel)
    norms: Norm = config.get("norms") or family.norms
    if norms == "separate" and not parallel:
        norms = "pre"

    listed = (family.layers or layers.alike)(config)
    blocks: list[Block] = []
    for layer in listed:
        blocks += _blocks(config.replaced(layer), family, layer, norms, parallel)

    return Design(
        vocabulary=config.whole("vocab_size"),
        width=width,
        blocks=tuple(blocks),
        tied=config.flag("tie_word_embeddings"),
        stream=_stream(config, family),
    ).normal()


def _blocks(
    config: Config, family: Family, layer: LayerValues, norms: Norm, parallel: bool
) -> list[Block]:
    """Return the blocks of a layer: two where a matrix is in the place of its mixer."""
    mixer = _mixer(config, family, str(layer["mixer"]))
    feed_forward = _feed_forward(config, family, str(layer.get("feed_forward", layers.DENSE)))
    if isinstance(mixer, Linear):
        return [Block(None, mixer, norms), Block(None, feed_forward, norms)]

    return [Block(mixer, feed_forward, norms, parallel)]


def _mixer(config: Config, family: Family, kind: str) -> Mixer | Linear | None:
    if kind == layers.NONE:
        return None

    if kind == layers.LINEAR:
        extras = {"bias": True} if config.flag(family.output_bias) else {}
        return Linear(config.whole("hidden_size"), Attributes(extras))

    if kind in family.mixers:
        return family.mixers[kind](config, family)

    if kind == layers.FULL:
        return mixers.attention(config, family)

    if kind == layers.SLIDING:
        return mixers.sliding_attention(config, family)

    raise config.refuse(f"layers of the type {kind!r:.60} have no form in {family.model_type}")


def _feed_forward(config: Config, family: Family, kind: str) -> FeedForward | None:
    if kind == layers.NONE:
        return None

    if kind == layers.EXPERTS:
        return feed_forwards.experts(config, family)

    if kind == layers.LINEAR:
        return feed_forwards.linear(config, family)

    return feed_forwards.dense(config, family)


def _stream(config: Config, family: Family) -> StreamSettings:
    embedding = {} if family.embedding is None else family.embedding(config)
    residual = {} if family.residual is None else family.residual(config)
    head = {} if family.head is None else family.head(config)
    return StreamSettings(
        Attributes(embedding), _norm(config, family), Attributes(residual), Attributes(head)
    )


def _norm(config: Config, family: Family) -> Attributes:
    settings: dict[str, Any] = {}
    if family.norm != "rms":
        settings["kind"] = "layer"
        settings["bias" if family.norm == "layer" else "unscaled"] = True

    epsilon = config.real(family.epsilon)
    if epsilon != EPSILON or settings:
        settings["epsilon"] = epsilon

    return Attributes(settings)
