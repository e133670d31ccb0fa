"""Sketches: networks of any builder as layers of the space `torch`, from one pass without values.

    sketch = sketch_of(module, (3, 224, 224))
    features(sketch.architecture, sketch.shapes)

An import (`archive.trainer.intake.models`) takes seconds, and its network computes what the model computes. A sketch takes
hundredths of a second. It has operations, weights and the shapes of outputs, which is what
`archive.agents.prediction.features` reads, and cannot be built: settings are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from archive.architecture.aten import weights
from archive.architecture.aten.signature import signatures
from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture
from archive.architecture.outline.shapes import BATCH, Shape
from archive.trainer.intake.conversion import NetworkDraft

_NAMES: Mapping[str, str] = {
    "native_batch_norm": "batch_norm",
    "cudnn_batch_norm": "batch_norm",
    "_scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention": "scaled_dot_product_attention",
}
"""Operations that PyTorch runs to the vocabulary's."""

_PRODUCTS: Mapping[str, tuple[int, int | None]] = {"mm": (1, None), "addmm": (2, 0)}
"""Products that are a linear layer if the matrix is a weight: positions of matrix and bias."""

_SETTINGS = ("stride", "padding", "dilation", "transposed", "groups")


class Sketch(NamedTuple):
    """A sketch of a network.

    Attributes:
        architecture: Its layers in the space `torch`.
        shapes: Shape of the output of each layer, for `BATCH` inputs.
    """

    architecture: Architecture
    shapes: list[Shape | None]


def sketch_of(module: nn.Module, input_shape: Sequence[int]) -> Sketch:
    """Return the sketch of a network in evaluation mode.

    Args:
        module: A network of one input and one output, on the device `meta` afterwards.
        input_shape: Shape of one input, without the batch.
    """
    module = module.eval().to("meta")
    image = torch.empty((BATCH, *input_shape), device="meta")
    recorder = _SketchRecorder(image)
    with torch.no_grad(), recorder:
        output = module(image)

    draft = recorder.draft
    architecture = draft.end([recorder.position(output)])
    shapes = [recorder.shapes[position] for position in draft.kept[:-1]]
    return Sketch(architecture, [*shapes, tuple(output.shape)])


class _SketchRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the operations that run under it as layers.

    Attributes:
        draft: The layers so far.
        shapes: Shape of the output of each.
    """

    def __init__(self, image: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.draft = NetworkDraft()
        self.shapes: list[Shape | None] = [tuple(image.shape)]
        self._positions = {id(image): self.draft.begin([Input(tuple(image.shape[1:]))])[0]}
        self._transposed: dict[int, Tensor] = {}
        # Products see tokens in one row; their shape before, by the id of the rows.
        self._tokens: dict[int, Shape] = {}
        # A tensor that is freed would give its id to another one.
        self._seen: list[Any] = [image]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # See `archive.trainer.nn.costs`.
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        self._seen.append(out)
        parts = out if isinstance(out, (tuple, list)) else [out]
        outputs = [part for part in parts if isinstance(part, Tensor)]
        sources = self._sources(args)
        if func is torch.ops.aten.t.default and not sources:
            self._transposed[id(out)] = args[0]
        elif outputs and sources:
            if func is torch.ops.aten.view.default and args[0].shape[-1] == out.shape[-1]:
                self._tokens[id(out)] = tuple(args[0].shape)

            position = self._add(func, args, sources, outputs[0])
            self._positions.update(dict.fromkeys(map(id, outputs), position))

        return out

    def position(self, output: Tensor) -> int:
        """Return the position of the layer with an output."""
        return self._positions[id(output)]

    def _sources(self, args: Sequence[Any]) -> dict[int, int]:
        """Return the layers that the arguments come from, by the number of the argument."""
        sources: dict[int, int] = {}
        number = 0
        for argument in args:
            parts = argument if isinstance(argument, (tuple, list)) else [argument]
            for part in parts:
                if isinstance(part, Tensor):
                    if id(part) in self._positions:
                        sources[number] = self._positions[id(part)]

                    number += 1

        return sources

    def _add(self, func: Any, args: Sequence[Any], sources: Mapping[int, int], out: Tensor) -> int:
        op = func.overloadpacket.__name__
        op = _NAMES.get(op, op).removesuffix("_")
        if op not in signatures():
            # Copies and other operations that the vocabulary does without.
            return next(iter(sources.values()))

        shape = tuple(out.shape)
        attributes: dict[str, Any] = {}
        matrix, bias = _PRODUCTS.get(op, (0, None))
        if matrix and id(args[matrix]) in self._transposed:
            op = "linear"
            sources = {0: next(iter(sources.values()))}
            rows = args[matrix - 1]
            shape = (*self._tokens.get(id(rows), tuple(rows.shape))[:-1], shape[-1])
            attributes["weight"] = list(self._transposed[id(args[matrix])].shape)
            if bias is not None:
                attributes["bias"] = list(args[bias].shape)
        else:
            parameters = [argument.name for argument in func._schema.arguments]
            owned = weights.OWNED.get(op, ())
            for name, argument in zip(parameters, args, strict=False):
                if name in owned and isinstance(argument, Tensor):
                    if id(argument) not in self._positions:
                        attributes[name] = list(argument.shape)
                elif op == "convolution" and name in _SETTINGS:
                    attributes[name] = argument

        self.shapes.append(shape)
        return self.draft.add(op, attributes, sources)
