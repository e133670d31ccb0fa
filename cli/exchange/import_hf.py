"""`archive import hf`: published language models by their configurations."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archive.cli.parameters import Count
from archive.cli.render import (
    json_option,
    open_archive,
    print_fields,
    print_json,
    print_message,
    print_table,
)

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture

LENGTHS = (2048, 32768)
"""Lengths of sequences at which costs are shown by default."""

LONGEST = 10**9
"""Largest number of tokens of a sequence."""


@dataclass(frozen=True)
class LengthCosts:
    """Costs of a model at a length of its sequences.

    Attributes:
        length: Tokens of a sequence.
        flops_per_token: Mean multiply-adds of a token.
        kv_cache_bytes: Bytes that generation keeps of a sequence, at two bytes a number.
    """

    length: int
    flops_per_token: float
    kv_cache_bytes: int


@dataclass(frozen=True)
class PublishedImport:
    """A published language model that was imported.

    Attributes:
        key: Key of the architecture.
        name: Its name, a tag of the architecture.
        model_type: Its family, a tag likewise.
        causal_class: Class of `transformers` that builds it; empty without one.
        layers: Number of layers of the graph.
        blocks: Number of blocks.
        params: Number of parameters, tied ones once.
        costs: Costs at some lengths.
        notes: What was left out of the configuration.
    """

    key: str
    name: str
    model_type: str
    causal_class: str
    layers: int
    blocks: int
    params: int
    costs: list[LengthCosts]
    notes: list[str]


@click.command("hf", short_help="Import a published language model by its configuration.")
@click.argument("reference", metavar="CONFIG|NAME")
@click.option(
    "--name",
    metavar="NAME",
    show_default="the configuration's, else its folder's or NAME",
    help="Name of the model.",
)
@click.option(
    "--length",
    "lengths",
    type=Count(1, LONGEST),
    multiple=True,
    show_default="2048 and 32768",
    help="Tokens of a sequence, for the costs. May be repeated.",
)
@json_option
@click.pass_context
def hf(
    ctx: click.Context,
    /,
    reference: str,
    name: str | None,
    lengths: tuple[int, ...],
    as_json: bool,
) -> None:
    """Import a language model of Hugging Face as an architecture of the vocabulary decoder.

    CONFIG is a config.json or its folder, as of Llama, Mistral, Qwen, Gemma, GPT-2, NeoX, Phi,
    OLMo, SmolLM, Falcon, Mamba, Jamba, Bamba, DeepSeek, Mixtral, gpt-oss, Granite, and of NVIDIA's
    configurations with block_configs. NAME is a class or a model type of the package transformers,
    as Qwen3ForCausalLM or qwen3, with its default configuration; it needs the extra frameworks.
    Nothing is downloaded, and no weights are read. The parameters are those of the class.
    """
    from archive.exchange.hugging_face.reading import read_config, read_file
    from archive.exchange.hugging_face.storing import add_published

    path = Path(reference)
    values = read_file(path) if path.exists() else _by_name(reference)
    model = read_config(values, reference)
    called = name or model.name or _name_of(path)
    with open_archive(ctx) as archive:
        architecture = add_published(archive, model, called)

    document = PublishedImport(
        key=architecture.key,
        name=called,
        model_type=model.model_type,
        causal_class=model.causal_class,
        layers=len(architecture.layers),
        blocks=len(model.design.blocks),
        params=_params(architecture),
        costs=_costs(architecture, lengths or LENGTHS),
        notes=list(model.notes),
    )
    for note in document.notes:
        print_message(f"note: {note}")

    if as_json:
        print_json(document)
        return

    fields = {field: value for field, value in vars(document).items() if value not in ("", [])}
    del fields["costs"]
    fields.pop("notes", None)
    print_fields(fields, 12)
    rows = [tuple(vars(cost).values()) for cost in document.costs]
    print_table(("length", "flops_per_token", "kv_cache_bytes"), rows)


def _by_name(name: str) -> dict[str, Any]:
    from archive.errors import UsageError
    from archive.trainer.zoo.transformers_names import config_of

    if Path(name).suffix == ".json":
        raise UsageError(f"no configuration can be read from {name}: there is no such file")

    return config_of(name)


def _name_of(path: Path) -> str:
    """Return the name of a model whose configuration has none."""
    # Of `.` as well; a link of a download cache keeps its own name.
    path = Path(os.path.abspath(path))
    if path.name == "config.json":
        return path.parent.name

    return path.stem if path.suffix == ".json" else path.name


def _params(architecture: Architecture) -> int:
    from archive.architecture.decoders.costs import params

    return params(architecture)


def _costs(architecture: Architecture, lengths: tuple[int, ...]) -> list[LengthCosts]:
    from archive.architecture.decoders import costs

    listed = []
    for length in lengths:
        flops = costs.flops_per_token(architecture, length)
        listed.append(LengthCosts(length, flops, costs.kv_cache_bytes(architecture, length)))

    return listed
