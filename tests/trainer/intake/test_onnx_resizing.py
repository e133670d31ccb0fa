"""Resize and Upsample of ONNX files: the pixels of onnxruntime and of the reference, or a
refusal."""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from torch import nn
from torch.nn import functional as F

from archive.errors import UsageError
from archive.trainer.intake.models import import_model
from archive.trainer.intake.onnx_graphs import files
from archive.trainer.intake.onnx_graphs.module import OnnxModule
from archive.trainer.nn.aten import network

TRANSFORMS = (
    "asymmetric",
    "half_pixel",
    "align_corners",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
)
ROUNDINGS = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
SIZE = (1, 2, 6, 5)


def resize(
    target: Sequence[float],
    shape: Sequence[int] = SIZE,
    opset: int = 19,
    op: str = "Resize",
    **settings: Any,
) -> onnx.ModelProto:
    """A model of one node; a target of real numbers is its scales, one of whole numbers its
    sizes."""
    scaled = isinstance(target[-1], float)
    values = numpy_helper.from_array(np.array(target, np.float32 if scaled else np.int64), "target")
    used = (
        ["x", "target"]
        if opset < 11
        else ["x", "roi", "target"]
        if scaled
        else ["x", "roi", "none", "target"]
    )
    graph = helper.make_graph(
        [helper.make_node(op, used, ["y"], **settings)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape[1:]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            values,
            *(
                numpy_helper.from_array(np.zeros(0, np.float32), name)
                for name in used
                if name in ("roi", "none")
            ),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def pixels(shape: Sequence[int] = SIZE) -> torch.Tensor:
    return torch.randn(tuple(shape), generator=torch.Generator().manual_seed(1))


def ours(model: onnx.ModelProto, x: torch.Tensor) -> torch.Tensor | None:
    try:
        return OnnxModule(model)(x)
    except UsageError:
        return None


def runtimes(model: onnx.ModelProto, x: torch.Tensor) -> torch.Tensor:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return torch.from_numpy(session.run(None, {"x": x.numpy()})[0])


def references(model: onnx.ModelProto, x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.asarray(ReferenceEvaluator(model).run(None, {"x": x.numpy()})[0]))


SETTINGS = [
    *({"mode": "nearest", "nearest_mode": how} for how in ROUNDINGS),
    *(
        {"mode": mode, "exclude_outside": outside}
        for mode in ("linear", "cubic")
        for outside in (0, 1)
    ),
    {"mode": "linear", "antialias": 1},
    {"mode": "cubic", "antialias": 1},
    {"mode": "cubic", "cubic_coeff_a": -0.5},
]
LENGTHS = [
    (1, 2, 12, 5),
    (1, 2, 3, 10),
    (1, 2, 9, 7),
    (1, 2, 18, 2),
    (1.0, 1.0, 0.5, 1.0),
    (1.0, 1.0, 1.5, 2.0),
]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_pixels_are_those_of_the_file_or_it_is_refused(transform: str) -> None:
    x = pixels()
    read = 0
    for settings, target in itertools.product(SETTINGS, LENGTHS):
        model = resize(target, coordinate_transformation_mode=transform, **settings)
        found = ours(model, x)
        if found is not None:
            read += 1
            torch.testing.assert_close(
                found, references(model, x), rtol=1e-4, atol=1e-5, msg=f"{settings} {target}"
            )

    assert read


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_nearest_pixels_are_read_where_pytorch_picks_them(transform: str, rounding: str) -> None:
    """A slow oracle: the pixels of the reference, and those of both modes of PyTorch."""
    x = torch.arange(8.0).reshape(1, 1, 8, 1)
    for length in range(1, 18):
        settings = {"coordinate_transformation_mode": transform, "nearest_mode": rounding}
        model = resize((1, 1, length, 1), x.shape, **settings)
        expected = references(model, x)
        found = ours(model, x)
        modes = [F.interpolate(x, (length, 1), mode=mode) for mode in ("nearest", "nearest-exact")]
        assert (found is not None) == any(torch.equal(one, expected) for one in modes), length
        assert found is None or torch.equal(found, expected)


READ: dict[str, tuple[onnx.ModelProto, dict[str, Any]]] = {
    "default, whole scale": (resize((1.0, 1.0, 2.0, 3.0)), {"scale_factor": (2, 3)}),
    "default, half": (resize((1.0, 1.0, 0.5, 1.0)), {"scale_factor": (0.5, 1.0)}),
    "ties up": (resize((1.0, 1.0, 0.5, 1.0), nearest_mode="round_prefer_ceil"),
                {"scale_factor": (0.5, 1.0), "mode": "nearest-exact"}),
    "tensorflow": (resize((1, 2, 4, 4), opset=11, coordinate_transformation_mode="tf_half_pixel_for_nn",
                          nearest_mode="floor"), {"size": (4, 4), "mode": "nearest-exact"}),
    "scale, not its size": (resize((1.0, 1.0, 1.7, 1.7), mode="linear"),
                            {"scale_factor": (1.7, 1.7), "mode": "bilinear"}),
    "scale of 32 bits": (resize((1.0, 1.0, 1 / 3, 0.7), (1, 2, 9, 10), mode="cubic"),
                         {"scale_factor": (1 / 3, 0.7), "mode": "bicubic"}),
    "length of 32 bits": (resize((1.0, 1.0, 0.29, 1.0), (1, 2, 100, 4), mode="linear"),
                          {"scale_factor": (0.29000000000000004, 1.0), "mode": "bilinear"}),
    "corners": (resize((1, 2, 9, 1), mode="linear", coordinate_transformation_mode="align_corners"),
                {"size": (9, 1), "mode": "bilinear", "align_corners": True}),
    "old PyTorch": (resize((1, 2, 9, 4), mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
                    {"size": (9, 4), "mode": "bilinear"}),
    "axes": (resize((12, 3), axes=[-1, 2], mode="linear"), {"size": (3, 12), "mode": "bilinear"}),
    "aspect, whole": (resize((12, 100), axes=[2, 3], keep_aspect_ratio_policy="not_larger", mode="linear"),
                      {"size": (12, 10), "mode": "bilinear"}),
    "aspect, larger": (resize((1, 15), axes=[2, 3], keep_aspect_ratio_policy="not_smaller", mode="linear"),
                       {"size": (18, 15), "mode": "bilinear"}),
    "filter that does nothing": (resize((1, 2, 9, 7), mode="cubic", antialias=1), {"size": (9, 7), "mode": "bicubic"}),
    "line": (resize((1.0, 1.0, 2.0), (1, 2, 6), mode="linear"), {"scale_factor": 2, "mode": "linear"}),
    "volume": (resize((1, 2, 3, 9, 5), (1, 2, 4, 4, 4), mode="linear"), {"size": (3, 9, 5), "mode": "trilinear"}),
    "version 10": (resize((1.0, 1.0, 2.0, 1.5), opset=10), {"scale_factor": (2, 1.5)}),
    "upsample": (resize((1.0, 1.0, 3.0, 1.5), opset=9, op="Upsample"), {"scale_factor": (3, 1.5)}),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_what_pytorch_computes_is_read(case: str) -> None:
    model, settings = READ[case]
    x = pixels((1, *files.inputs(model)[0][0].shape))
    with torch.no_grad():
        found = OnnxModule(model)(x)

    assert torch.equal(found, F.interpolate(x, **settings))
    torch.testing.assert_close(found, runtimes(model, x), rtol=1e-4, atol=1e-5)


WAY = "export the model with half_pixel or align_corners"
TIES = (
    "has the mode nearest with half_pixel and round_prefer_floor, .* with asymmetric and "
    "floor, or import"
)
REFUSED: dict[str, tuple[onnx.ModelProto, str]] = {
    "asymmetric": (resize((1, 2, 9, 7), mode="linear", coordinate_transformation_mode="asymmetric"),
                   ("'y' of the operator Resize has the mode linear with asymmetric, .* lengths: "
                   f"{WAY}, or import it")),
    "ties down": (resize((1, 2, 9, 7)), TIES),
    "one pixel": (resize((1, 2, 1, 7), mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
                  "has the mode linear with pytorch_half_pixel"),
    "crop": (resize((1, 2, 9, 7), mode="linear", coordinate_transformation_mode="tf_crop_and_resize"),
             "has the mode linear with 'tf_crop_and_resize'"),
    "coefficient": (resize((1, 2, 9, 7), mode="cubic", cubic_coeff_a=-0.5), "the cubic_coeff_a "
                                                                            "-0.5, .* with -0.75"),
    "outside": (resize((1, 2, 9, 7), mode="cubic", exclude_outside=1), "cubic with exclude_outside, .* without it"),
    "filter": (resize((1, 2, 3, 7), mode="linear", antialias=1), "linear with antialias, .* "
                                                                 "without it"),
    "rounded aspect": (resize((7, 100), axes=[2, 3], keep_aspect_ratio_policy="not_larger"),
                       ("the keep_aspect_ratio_policy 'not_larger' with lengths that must be "
                       "rounded: .* with stretch")),
    "channels": (resize((1.0, 2.0, 1.0, 1.0)), "resizes the batch or the channels: transpose"),
    "channels by size": (resize((1, 4, 6, 5)), "resizes the batch or the channels: transpose"),
    "batch": (resize((2, 2, 6, 5)), "resizes the batch or the channels: transpose"),
    "matrix": (resize((3, 4), (1, 2)), "has the mode 'nearest' for a tensor of 2 sides"),
    "cubic line": (resize((1, 2, 9), (1, 2, 6), mode="cubic"), "has the mode 'cubic' for a "
                                                               "tensor of 3 sides"),
    "no pixel": (resize((1.0, 1.0, 0.1, 1.0)), "has outputs without a pixel: 0x5"),
    "no target": (resize((1.0, 1.0)), "needs scales or sizes for 4 sides"),
    "old": (resize((1.0, 1.0, 2.0, 2.0), opset=9, op="Upsample", mode="linear"),
            (f"the operator Upsample has the mode linear with asymmetric, .*: {WAY}, in version "
            "11 of the operators")),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_pytorch_does_not_compute_is_refused(case: str) -> None:
    model, reason = REFUSED[case]
    with pytest.raises(UsageError, match=reason) as caught:
        OnnxModule(model)(pixels((1, *files.inputs(model)[0][0].shape)))

    assert "\n" not in str(caught.value)


class Interpolated(nn.Module):
    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = settings
        self.scale = nn.Parameter(torch.tensor([0.5, 2.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x * self.scale.reshape(1, 2, *[1] * (x.ndim - 2)), **self.settings)


def exported(model: nn.Module, x: torch.Tensor, opset: int, dynamic: bool) -> onnx.ModelProto:
    content = io.BytesIO()
    axes = {"x": {0: "batch"}} if dynamic else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (x,),
            content,
            dynamo=False,
            opset_version=opset,
            input_names=["x"],
            dynamic_axes=axes,
            verbose=False,
        )

    return onnx.load_from_string(content.getvalue())


EXPORTED: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((6,), {"scale_factor": 2}),
    ((6,), {"size": 9, "mode": "linear"}),
    ((6, 5), {"scale_factor": 1.7}),
    ((6, 5), {"size": (4, 9)}),
    ((6, 5), {"scale_factor": 1.7, "recompute_scale_factor": True}),
    ((6, 5), {"scale_factor": 0.5, "mode": "bilinear"}),
    ((6, 5), {"scale_factor": 1.7, "mode": "bilinear", "align_corners": True}),
    ((6, 5), {"size": 1, "mode": "bilinear", "align_corners": True}),
    ((6, 5), {"scale_factor": 1.7, "mode": "bicubic"}),
    ((6, 5), {"size": (9, 3), "mode": "bicubic", "align_corners": True}),
    ((3, 4, 5), {"scale_factor": 2}),
    ((3, 4, 5), {"scale_factor": (2, 1.5, 1), "mode": "trilinear"}),
]


@pytest.mark.parametrize("opset", [9, 10, 11, 17])
def test_interpolations_that_pytorch_exports_are_read(opset: int) -> None:
    for sides, settings in EXPORTED:
        if opset < 11 and ("mode" in settings or "size" in settings):
            continue

        model = Interpolated(**settings)
        x = pixels((3, 2, *sides))
        with torch.no_grad():
            found = OnnxModule(exported(model, x, opset, dynamic=True))(x)
            torch.testing.assert_close(found, model(x), msg=f"{sides} {settings}")


@pytest.mark.lasts(4)
@pytest.mark.parametrize("dynamic", [True, False])
def test_an_imported_interpolation_is_that_of_the_model(dynamic: bool) -> None:
    for settings in (
        {"size": (9, 4), "mode": "bilinear"},
        {"scale_factor": 1.7, "mode": "bicubic"},
        {"scale_factor": 1.7, "recompute_scale_factor": True},
    ):
        model = Interpolated(**settings)
        x = pixels((3, 2, 6, 5))
        file = exported(model, x, 17, dynamic)
        module = OnnxModule(file, files.inputs(file)[1])
        imported = import_model(module, files.inputs(file)[0])
        again = network.rebuilt(imported.architecture)
        again.load_state_dict(imported.state_dict(module))
        with torch.no_grad():
            torch.testing.assert_close(again(x), model(x), msg=f"{settings}")


@pytest.mark.lasts(2)
def test_scales_make_the_network_that_pytorch_has() -> None:
    for settings in ({"scale_factor": 2.0}, {"scale_factor": 2.0, "mode": "bilinear"}):
        model = nn.Upsample(**settings)
        x = pixels((2, 2, 6, 5))
        file = exported(model, x, 17, True)
        inputs = files.inputs(file)[0]
        assert (
            import_model(OnnxModule(file), inputs).architecture.key
            == import_model(model, inputs).architecture.key
        )


@pytest.mark.whole
@pytest.mark.lasts(8)
def test_interpolations_that_the_exporter_writes_out_are_read() -> None:
    for sides, settings in (
        ((6,), {"size": 9, "mode": "linear"}),
        ((6, 5), {"size": (9, 4), "mode": "nearest-exact"}),
    ):
        model = Interpolated(**settings)
        x = pixels((3, 2, *sides))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(model, (x,), dynamo=True, verbose=False)

        assert program is not None
        with torch.no_grad():
            torch.testing.assert_close(
                OnnxModule(program.model_proto)(x), model(x), msg=f"{settings}"
            )
