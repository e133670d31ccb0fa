"""Arguments of `archive arch`: architectures by key, file, text or model; settings of a kernel."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archive.cli.render import open_archive
from archive.errors import CodecError, InvalidArchitectureError, UsageError

if TYPE_CHECKING:
    from archive.architecture.decoders.design import Design
    from archive.architecture.graph import Architecture


setting_option = click.option(
    "--set",
    "assigned",
    multiple=True,
    metavar="NAME=VALUE",
    help="Setting of the kernel. May be repeated.",
)


input_option = click.option(
    "--input",
    "inputs",
    metavar="SHAPE",
    multiple=True,
    show_default="3x224x224",
    help="Shape of an input of a model without the batch, or 128:int64. May be repeated.",
)

_DEFAULT_INPUT = "3x224x224"

_MODEL = re.compile(r"[\w./~-]+:[A-Za-z_][\w.]*")


def is_model(text: str) -> bool:
    """Return whether an argument names a model: `my_model.py:build`, `MODULE:FACTORY`."""
    return _MODEL.fullmatch(text) is not None and not os.path.isfile(text)


def is_key(text: str) -> bool:
    """Return whether an argument is a key of the archive or the prefix of a key."""
    # No form of a network and no suffix is letters and digits alone: keys load no codecs.
    if not text.isalnum():
        from archive.architecture.texts import is_text

        if is_text(text) or is_model(text) or Path(text).suffix:
            return False

    return not os.path.isfile(text)


def architecture_of(ctx: click.Context, text: str, inputs: Sequence[str] = ()) -> Architecture:
    """Return the architecture that an argument describes; only a key opens the archive.

    Args:
        ctx: The command's context.
        text: A NAS-Bench-201 string `|…|+|…|+|…|`, a genotype `Genotype(…)`, JSON, the path of a
            file with one of these or with a published `config.json`, a model `FILE.py:FACTORY` or `MODULE:FACTORY`, or a key or its
            prefix.
        inputs: Shapes of the inputs of a model; none stands for an image of 224 x 224.

    Raises:
        CodecError: The string or the file describes no graph.
        InvalidArchitectureError: The graph is no network.
        UnknownNameError: The archive has no such key.
        UsageError: Several keys have the prefix, or the file cannot be read.
    """
    if is_key(text):
        with open_archive(ctx) as archive:
            return archive.architectures.get(archive.architectures.find(text))

    from archive.architecture.texts import from_text, is_text

    if is_text(text):
        return from_text(text)

    if is_model(text):
        return _export(text, inputs)

    path = Path(text)
    described = _read(path)
    if (published := _published(described, path)) is not None:
        return published

    try:
        return from_text(described)
    except CodecError as error:
        raise CodecError(f"{path} describes no architecture: {error}") from None
    except InvalidArchitectureError as error:
        raise InvalidArchitectureError(
            f"{path} describes no network: {error.reason}", error.layer
        ) from None


def labels_of(ctx: click.Context, text: str, architecture: Architecture) -> dict[int, str]:
    """Return the decisions of an architecture in words, by the position of the layer.

    Args:
        ctx: The command's context.
        text: The argument that describes the architecture; only a key of the archive has studies,
            which name its decisions.
        architecture: The architecture.
    """
    from archive.architecture import choice_operations

    if architecture.space != choice_operations.NAME or not is_key(text):
        return {}

    from archive.store.studies.configurations import configuration_of_network

    with open_archive(ctx) as archive:
        named = configuration_of_network(archive.connection, architecture)

    return choice_operations.decision_labels(architecture, named)


def decoder_of(architecture: Architecture) -> Design | None:
    """Return the design of a decoder; None for another network."""
    from archive.architecture.decoders.design import design_of
    from archive.architecture.decoders.vocabulary import NAME

    if architecture.space != NAME:
        return None

    try:
        return design_of(architecture)
    except InvalidArchitectureError:
        return None


def networks_of(ctx: click.Context, architectures: Sequence[Architecture]) -> list[Architecture]:
    """Return the networks of configurations of parameters, where the archive has all of them.

    Other architectures are returned as they are, and open no archive.
    """
    from archive.architecture.parameter_operations import CONFIGURATIONS

    if any(architecture.space not in CONFIGURATIONS for architecture in architectures):
        return list(architectures)

    with open_archive(ctx) as archive:
        return archive.builds.networks_of(architectures)


def _published(described: str, path: Path) -> Architecture | None:
    """Return the decoder of a configuration of a published model; None for another text."""
    if '"model_type"' not in described:
        return None

    from archive.exchange.hugging_face.reading import is_config, read_config

    try:
        values = json.loads(described)
    except (ValueError, RecursionError):
        return None

    return read_config(values, str(path)).design.graph() if is_config(values) else None


def _export(reference: str, inputs: Sequence[str]) -> Architecture:
    from archive.architecture.aten.wiring import read_input
    from archive.trainer.intake.factories import model_of
    from archive.trainer.intake.models import import_model

    shapes = list(map(read_input, inputs or [_DEFAULT_INPUT]))
    return import_model(model_of(reference, {}, meta=True), shapes).architecture


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"no architecture can be read from {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise UsageError(f"no architecture can be read from {path}: it is no text") from None
