"""`archive weights`: trained networks as files for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from archive.cli.groups import CommandGroup
from archive.cli.parameters import force_option
from archive.cli.render import json_option, open_archive, print_fields, print_json, print_message

if TYPE_CHECKING:
    from archive.trainer.datasets.splits import Scaling
    from archive.trainer.export.trained import ModelInput, ModelOutput


@dataclass(frozen=True)
class ExportedModel:
    """A trained network that was written to a file.

    Attributes:
        evaluation: Id of the evaluation that has the weights.
        architecture: Key of the architecture.
        space: Name of its space.
        task: Name of the task.
        protocol: Name of the training protocol.
        value: The objective.
        path: The file.
        format: `pt2`, `onnx` or `safetensors`.
        bytes: Its size.
        input: The input; null for weights alone.
        output: The output; null for weights alone.
        scaling: Standardisation of the data; null where it is not known here.
    """

    evaluation: str
    architecture: str
    space: str
    task: str
    protocol: str
    value: float
    path: str
    format: Literal["pt2", "onnx", "safetensors"]
    bytes: int
    input: ModelInput | None
    output: ModelOutput | None
    scaling: Scaling | None


_FORMAT_NAMES: dict[str, Literal["pt2", "onnx", "safetensors"]] = {
    ".pt2": "pt2",
    ".onnx": "onnx",
    ".safetensors": "safetensors",
}


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
    help="File to write: model.pt2, model.onnx or model.safetensors. The suffix chooses the "
    "format.",
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
    exported = ExportedModel(
        **vars(about), path=str(path), format=_FORMAT_NAMES[form], bytes=len(content)
    )
    if as_json:
        print_json(exported)
    else:
        _print(exported)


def _print(exported: ExportedModel) -> None:
    names = ("evaluation", "architecture", "task", "protocol", "value", "path", "bytes")
    fields = {name: getattr(exported, name) for name in names}
    if exported.input is not None:
        shape = ", ".join(map(str, exported.input.shape))
        fields["input"] = f"({shape}), {exported.input.dtype}, {exported.input.scaling}"

    if exported.output is not None:
        shape = ", ".join(map(str, exported.output.shape))
        fields["output"] = f"({shape}), {exported.output.meaning}"

    print_fields(fields, 12)
    if exported.input is not None and exported.scaling is None:
        print_message(
            "the means and deviations of the inputs are not known here: "
            "the task's data are elsewhere"
        )
