"""Files of a trained network for other programs.

| file           | content                                        | read by                   |
|----------------|------------------------------------------------|---------------------------|
| `.safetensors` | the weights, byte for byte as they were saved  | `safetensors`             |
| `.pt2`         | the exported program of `torch.export`         | `torch.export.load(path)` |
| `.onnx`        | the graph of torch's ONNX exporter and weights | ONNX Runtime and others   |

`.pt2` and `.onnx` have one input, `input`, and one output, `output`; the size of a batch is free.
What a user must know of both stands in the file as JSON: in `archive.json`, and in the metadata
entry `archive`.
"""

from __future__ import annotations

import importlib.util
import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from archive.errors import SettingsError, TrainingError, UsageError
from archive.trainer.export.trained import ModelSummary, TrainedNetwork, describe

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.export import ExportedProgram

    from archive.trainer.datasets.splits import Scaling

FORMATS = (".pt2", ".onnx", ".safetensors")
METADATA = "archive"
TOLERANCE = 1e-4
"""Largest difference of an output of the exported model, relative to the largest output."""

_ONNX = ("onnx", "onnxscript")


def check_path(path: Path) -> str:
    """Return the format of a file by its suffix, after a check that it can be written.

    Raises:
        UsageError: The suffix stands for no format, or the folder does not exist.
        SettingsError: A package that the format needs is not installed.
    """
    form = path.suffix.lower()
    if form not in FORMATS:
        raise UsageError(
            f"a model is exported to a file with the suffix {', '.join(FORMATS)}, got {str(path)!r}"
        )

    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} of the exported model does not exist")

    absent = [name for name in _ONNX if importlib.util.find_spec(name) is None]
    if form == ".onnx" and absent:
        raise SettingsError(
            f"{' and '.join(absent)} are not installed: pip install 'nas-archive[onnx]'"
        )

    return form


def serialise(
    network: TrainedNetwork, form: str, *, raw_inputs: bool = False
) -> tuple[bytes, ModelSummary]:
    """Return the content of a file, and what a user of it must know.

    Args:
        network: The network.
        form: `.pt2` or `.onnx`.
        raw_inputs: Whether the model standardises its inputs itself.

    Raises:
        UsageError: The standardisation of the inputs is not known here.
        TrainingError: The network cannot be exported, or the exported one gives other outputs.
    """
    import torch

    about = describe(network)
    module = network.module
    if raw_inputs:
        if network.scaling is None:
            raise UsageError(
                "the scaling of the inputs is not known here: the data of the task "
                f"{network.evaluation.task} are not on this machine; export without --raw-inputs"
            )

        module = standardising(module, network.scaling, network.form.is_image)
        assert about.input is not None
        raw = "none: raw inputs, which the model standardises"
        about = replace(about, input=replace(about.input, scaling=raw))

    # Two inputs: torch.export takes a size of 1 for a constant.
    example = torch.zeros((2, *network.form.input_shape))
    with torch.no_grad(), _quiet():
        try:
            batch = torch.export.Dim("batch")
            program = torch.export.export(module, (example,), dynamic_shapes=({0: batch},))
            content = _pt2(program, about) if form == ".pt2" else _onnx(program, example, about)
        except Exception as error:
            # The exporters document no exceptions, and a module may come from another package.
            lines = str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {lines[0] if lines else 'without a message'}"
            raise TrainingError(f"the network cannot be exported to {form}: {reason}") from error

        _check(content, form, module, example)

    return content, about


def standardising(module: nn.Module, scaling: Scaling, image: bool) -> nn.Module:
    """Return a module that standardises raw inputs (n, *input_shape) for another one."""
    import torch
    from torch import nn

    shape = (-1, 1, 1) if image else (-1,)

    class Standardising(nn.Module):
        """Standardises its inputs."""

        mean: Tensor
        deviation: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.network = module
            # As in training: in double precision, rounded once.
            self.register_buffer(
                "mean", torch.tensor(scaling.mean, dtype=torch.float64).reshape(shape)
            )
            self.register_buffer(
                "deviation", torch.tensor(scaling.deviation, dtype=torch.float64).reshape(shape)
            )

        def forward(self, x: Tensor) -> Tensor:
            outputs: Tensor = self.network(((x - self.mean) / self.deviation).float())
            return outputs

    return Standardising().eval()


def _pt2(program: ExportedProgram, about: ModelSummary) -> bytes:
    import torch

    file = io.BytesIO()
    torch.export.save(program, file, extra_files={"archive.json": json.dumps(asdict(about))})
    return file.getvalue()


def _onnx(program: ExportedProgram, example: Tensor, about: ModelSummary) -> bytes:
    import torch

    exported = torch.onnx.export(
        program,
        (example,),
        dynamo=True,
        input_names=["input"],
        output_names=["output"],
        verbose=False,
    )
    if exported is None:
        raise TypeError("torch's ONNX exporter returned no program")

    model = exported.model_proto
    entry = model.metadata_props.add()
    entry.key = METADATA
    entry.value = json.dumps(asdict(about))
    content: bytes = model.SerializeToString()
    return content


def _check(content: bytes, form: str, module: nn.Module, example: Tensor) -> None:
    """Compare the outputs of an exported model and the network; of ONNX only with its runtime.

    Raises:
        TrainingError: They differ.
    """
    import torch

    generator = torch.Generator().manual_seed(0)
    x = torch.randn((3, *example.shape[1:]), generator=generator)
    if form == ".pt2":
        outputs = torch.export.load(io.BytesIO(content)).module()(x)
    elif importlib.util.find_spec("onnxruntime") is None:
        return
    else:
        import onnxruntime

        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        outputs = torch.from_numpy(session.run(None, {"input": x.numpy()})[0])

    expected = module(x)
    difference = float((outputs - expected).abs().max() / expected.abs().max().clamp(min=1e-12))
    if not difference <= TOLERANCE:
        raise TrainingError(
            "the exported model gives other outputs than the network: they "
            f"differ by {difference:.2g}"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporters' remarks on packages that no network here needs."""
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        exporter.setLevel(level)
