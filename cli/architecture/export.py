"""`archive arch export`: a decoder as a model of `transformers`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from archive.cli.architecture.argument import architecture_of
from archive.cli.parameters import force_option
from archive.cli.render import json_option, open_archive, print_fields, print_json


@dataclass(frozen=True)
class ExportedDecoder:
    """A decoder that was written for `transformers`.

    Attributes:
        architecture: Key of the architecture.
        causal_class: Class of `transformers` that builds it.
        evaluation: Id of the evaluation whose weights were written; null without weights.
        files: The files.
    """

    architecture: str
    causal_class: str
    evaluation: str | None
    files: list[str]


@click.command(short_help="Export a decoder as a model of transformers.")
@click.argument("key", metavar="ARCHITECTURE")
@click.option(
    "--to",
    "folder",
    metavar="FOLDER",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for config.json and model.safetensors.",
)
@click.option(
    "--weights",
    "evaluation",
    metavar="EVALUATION",
    show_default="no weights",
    help="Evaluation whose weights are written as well, STUDY#NUMBER.",
)
@force_option
@json_option
@click.pass_context
def export(
    ctx: click.Context,
    key: str,
    folder: Path,
    evaluation: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the config.json of a decoder, and its trained weights, for the package transformers.

    ARCHITECTURE is a key of the archive or its prefix, or a file. The class is the one that has all
    of its parts: Llama, Mistral or Ministral with windows, Mixtral with experts, Gemma 2 with
    sandwich norms. A line names the part that no class has. With weights, AutoModelForCausalLM
    loads the folder and gives the same logits.
    """
    from archive import files
    from archive.architecture.decoders.design import design_of
    from archive.exchange.hugging_face.writing import config_text, write_config

    architecture = architecture_of(ctx, key)
    config = write_config(design_of(architecture))
    content: dict[str, bytes] = {}
    if evaluation is not None:
        from archive.trainer.export.transformers_state import serialise

        with open_archive(ctx) as archive:
            config, weights = serialise(archive, evaluation, architecture)

        content["model.safetensors"] = weights

    content["config.json"] = config_text(config).encode()
    for name in content:
        files.check_free(folder / name, force=force)

    folder.mkdir(parents=True, exist_ok=True)
    for name, data in content.items():
        files.write_export(folder / name, data, force=force)

    document = ExportedDecoder(
        architecture=architecture.key,
        causal_class=config["architectures"][0],
        evaluation=evaluation,
        files=[str(folder / name) for name in sorted(content)],
    )
    if as_json:
        print_json(document)
    else:
        fields = {name: value for name, value in vars(document).items() if value is not None}
        print_fields({**fields, "files": ", ".join(document.files)}, 14)
