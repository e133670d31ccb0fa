"""`archive weights`: trained networks as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from archive.cli.groups import CommandGroup
from archive.cli.parameters import force_option
from archive.cli.render import json_option, open_archive, print_fields, print_json, print_message


@click.group(cls=CommandGroup)
def weights() -> None:
    """Export trained networks as files for other programs."""


@weights.command(short_help="Export a trained network as a .pt2, .onnx or .safetensors file.")
@click.argument("evaluation", metavar="EVALUATION")
@click.option(
    "--to",
    "path",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write: model.pt2, model.onnx or model.safetensors. The suffix chooses the format.",
)
@click.option(
    "--raw-inputs",
    is_flag=True,
    help="Let the model standardise its inputs, which are then in the data set's own units (.pt2 "
    "and .onnx).",
)
@click.option(
    "--weights-from",
    multiple=True,
    metavar="DIR|URL",
    help="Folder or fsspec URL with weights of other trainers that may be read, in addition to "
    "the archive's own. May "
    "be repeated.",
)
@force_option
@json_option
@click.pass_context
def export(
    ctx: click.Context,
    evaluation: str,
    path: Path,
    raw_inputs: bool,
    weights_from: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Export the trained network of an EVALUATION, which has the name of its proposal:
    STUDY#NUMBER.

    .pt2 is a program of torch.export, .onnx a graph for ONNX Runtime and others, and .safetensors
    the weights alone. The first two take a batch of any size, (batch, channels, height, width) or
    (batch, features), and give logits of the classes, or predictions. Inputs and predictions are
    standardised by the mean and the deviation of the training part, which the file holds in its
    metadata. The exported model is compared with the network.

    Weights are verified by their SHA-256. archive study best STUDY lists evaluations with weights.
    """
    from archive import files
    from archive.errors import UsageError
    from archive.trainer.export import formats, trained

    form = formats.check_path(path)
    files.check_free(path, force=force)
    if form == ".safetensors" and raw_inputs:
        raise UsageError(
            "a .safetensors file holds weights alone: --raw-inputs is for .pt2 and .onnx"
        )

    with open_archive(ctx) as archive:
        if form == ".safetensors":
            saved = trained.weights(archive, evaluation, weights_from)
            content = saved.content
            about = trained.summary(saved.evaluation)
        else:
            network = trained.network(archive, evaluation, weights_from)
            content, about = formats.serialise(network, form, raw_inputs=raw_inputs)

    files.write_export(path, content, force=force)
    _print(
        {**about, "path": str(path), "format": form.removeprefix("."), "bytes": len(content)},
        as_json,
    )


def _print(exported: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(exported)
        return

    names = ("evaluation", "architecture", "task", "protocol", "value", "path", "bytes")
    shown = {name: exported[name] for name in names}
    for part in ("input", "output"):
        if exported[part] is not None:
            shown[part] = ", ".join(
                f"{value}" if isinstance(value, str) else f"({', '.join(map(str, value))})"
                for value in exported[part].values()
            )

    print_fields(shown, 12)
    if exported["input"] is not None and exported["scaling"] is None:
        print_message(
            "the means and deviations of the inputs are not known here: the task's "
            "data are elsewhere"
        )
