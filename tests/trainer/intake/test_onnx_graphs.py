"""ONNX graphs as PyTorch modules: the outputs of onnxruntime, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper, parser

from archive.architecture.aten.wiring import Input
from archive.errors import UsageError
from archive.trainer.intake.models import ImportedModel, import_model
from archive.trainer.intake.onnx_graphs import files
from archive.trainer.intake.onnx_graphs.module import OnnxModule
from archive.trainer.nn.aten import network

IMAGE = "float[N,4,6,6] x"
VECTOR = "float[N,6] x"


def graph(nodes: str, given: str = IMAGE, opset: int = 17, **weights: Any) -> onnx.ModelProto:
    """A model of nodes in ONNX's text form; weights are arrays, or shapes of random ones."""
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g ({given}) => (float[] y) {{ {nodes} }}'
    )
    rng = np.random.default_rng(0)
    for name, value in weights.items():
        array = (
            rng.normal(size=value).astype(np.float32)
            if isinstance(value, tuple)
            else np.asarray(value)
        )
        if array.dtype == np.float64:
            array = array.astype(np.float32)

        model.graph.initializer.append(numpy_helper.from_array(array, name))

    return model


def expected(model: onnx.ModelProto, *inputs: torch.Tensor) -> torch.Tensor:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    found = session.run(None, {name: one.numpy() for name, one in zip(names, inputs, strict=True)})
    return torch.from_numpy(np.asarray(found[0]))


CASES: dict[str, onnx.ModelProto] = {
    "convolution": graph("y = Conv<pads=[1,0,1,0], strides=[2,1], group=2>(x, w, b)", w=(8, 2, 3, 1), b=(8,)),
    "uneven pads": graph("y = Conv<pads=[0,1,1,2]>(x, w)", w=(3, 4, 2, 2)),
    "same upper": graph('y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, w)', w=(3, 4, 3, 3)),
    "same lower": graph('y = Conv<auto_pad="SAME_LOWER">(x, w)', w=(3, 4, 2, 2)),
    "transposed": graph("y = ConvTranspose<strides=[2,2], output_padding=[1,1]>(x, w, b)", w=(4, 3, 2, 2), b=(3,)),
    "pools": graph(
        "a = MaxPool<kernel_shape=[3,3], pads=[0,0,1,1], strides=[2,2]>(x) "
        "b = AveragePool<kernel_shape=[2,2], strides=[2,2], pads=[1,1,1,1], count_include_pad=0>(x) "
        "c = GlobalMaxPool(a) d = GlobalAveragePool(b) y = Add(c, d)"
    ),
    "norms": graph(
        "a = BatchNormalization<epsilon=0.001>(x, w, b, m, v) c = InstanceNormalization(a, w, b) "
        "y = LayerNormalization<axis=-1>(c, l, k)",
        w=(4,), b=(4,), m=(4,), v=np.arange(1.0, 5), l=(6,), k=(6,),
    ),
    "activations": graph(
        "a = LeakyRelu<alpha=0.2>(x) b = Elu(a) c = Selu(b) d = HardSigmoid(c) e = HardSwish(d) f = PRelu(e, s) "
        "g = Softmax<axis=1>(f) h = Clip(g, low, high) y = Celu<alpha=0.5>(h)",
        s=(4, 1, 1), low=0.05, high=0.8,
    ),
    "linear": graph(
        "a = MatMul(x, w) b = Add(k, a) c = Relu(b) y = Gemm<transB=1>(c, v, l)",
        VECTOR, w=(6, 5), k=(5,), v=(3, 5), l=(3,),
    ),
    "general product": graph("y = Gemm<alpha=0.5, beta=2.0, transB=0>(x, w, b)", VECTOR, w=(6, 3), b=(3,)),
    "matrix used twice": graph("a = MatMul(x, w) y = MatMul(a, w)", VECTOR, w=(6, 6)),
    "sum used twice": graph("a = MatMul(x, w) b = Add(a, k) c = Mul(a, b) y = Sub(c, k)", VECTOR, w=(6, 5), k=(5,)),
    "arithmetic": graph(
        "a = Pow(x, two) b = Sub(one, a) c = Div(b, k) d = Max(c, x) e = Min(d, k) f = Sqrt(a) g = Erf(f) "
        "y = Sum(e, g, x)",
        two=2.0, one=1.0, k=(4, 1, 1),
    ),
    "comparisons": graph(
        "a = Greater(x, zero) b = Neg(x) c = Where(a, x, b) d = Not(a) e = Cast<to=1>(d) y = Add(c, e)", zero=0.0
    ),
    "reductions": graph(
        "a = ReduceMean<axes=[2], keepdims=0>(x) b = ReduceSum<keepdims=1>(x, two) "
        "c = ReduceMax<axes=[-1,2], keepdims=1>(x) d = ReduceL2<axes=[2,3]>(x) e = Unsqueeze(a, two) "
        "f = Add(e, b) g = Mul(f, c) y = Sub(g, d)",
        two=np.array([2]),
    ),
    "shape of the input": graph(
        "s = Shape(x) n = Gather<axis=0>(s, zero) m = Unsqueeze(n, at) t = Concat<axis=0>(m, rest) y = Reshape(x, t)",
        zero=np.array(0), at=np.array([0]), rest=np.array([2, -1]),
    ),
    "computed size": graph(
        "s = Shape<start=2>(x) h = Slice(s, zero, one) k = Mul(h, two) c = Cast<to=7>(k) t = Concat<axis=0>(all, c, c) "
        'y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , , t)',
        zero=np.array([0]), one=np.array([1]), two=np.array([2]), all=np.array([2, 4]),
    ),
    "filled for the batch": graph(
        "s = Shape<end=1>(x) t = Concat<axis=0>(s, rest) a = ConstantOfShape(t) y = Add(a, x)", rest=np.array([4, 6, 6])
    ),
    "parts": graph(
        "a, b = Split<axis=1>(x, halves) c = Slice(b, last, least, axes, back) e = Concat<axis=1>(c, a) "
        "f = Transpose<perm=[0,2,3,1]>(e) h = Flatten<axis=2>(f) y = Tile(h, twice)",
        halves=np.array([1, 3]), last=np.array([-1]), least=np.array([-9223372036854775807]), axes=np.array([3]),
        back=np.array([-1]), twice=np.array([1, 2]),
    ),
    "indices": graph(
        "a = Gather<axis=1>(x, order) b = Gather<axis=2>(x, one) c = Unsqueeze(b, two) y = Add(a, c)",
        order=np.array([2, 0, 3, 1]), one=np.array(1), two=np.array([2]),
    ),
    "tuples of indices": graph(
        "a = Transpose<perm=[2,3,0,1]>(x) b = GatherND(a, pairs) y = Transpose<perm=[1,2,0]>(b)",
        pairs=np.array([[0, 1], [5, -1], [2, 2]]),
    ),
    "pads": graph(
        'a = Pad<mode="reflect">(x, ends) y = Pad(a, more, fill)',
        ends=np.array([0, 0, 1, 0, 0, 0, 0, 2]), more=np.array([0, 1, 0, 0, 0, 0, 0, 1]), fill=0.5,
    ),
    "depth to space": graph(
        'a = DepthToSpace<blocksize=2>(x) b = DepthToSpace<blocksize=2, mode="CRD">(x) y = Sub(a, b)'
    ),
    "expanded": graph("a = GlobalAveragePool(x) y = Expand(a, sides)", sides=np.array([1, 4, 6, 6])),
    "bilinear": graph('y = Resize<mode="linear">(x, , scales)', scales=np.array([1, 1, 2, 1.5])),
    "softmax of older files": graph("a = Softmax(x) b = LogSoftmax<axis=2>(x) y = Add(a, b)", opset=11),
    "softmax of one pixel": graph("a = GlobalAveragePool(x) y = Softmax(a)", opset=9),
    "scaled selu": graph("y = Selu<alpha=2.0, gamma=3.0>(x)"),
    "flattened from behind": graph("a = Flatten<axis=-2>(x) b = Flatten<axis=2>(a) y = Flatten<axis=-1>(b)"),
    "flattened to a column": graph("y = Flatten<axis=4>(x)"),
    "indices from behind": graph("y = Gather<axis=-1>(x, k)", k=np.array([[-1, 2], [0, -6]])),
    "one index with two sides": graph("y = Gather<axis=1>(x, k)", k=np.array([[-1]])),
    "slopes of columns": graph("a = PRelu(x, k) y = PRelu(a, l)", "float[N,4,4,4] x", k=(4,), l=(1, 4, 1, 1)),
    "negative sizes": graph(
        "s = Shape(x) h = Slice(s, two, three) n = Neg(h) q = Div(n, four) p = Neg(q) "
        "t = Concat<axis=0>(zero, p, rest) y = Reshape(x, t)",
        two=np.array([2]), three=np.array([3]), four=np.array([4]), zero=np.array([0]), rest=np.array([-1]),
    ),
    "bias of one row": graph("y = Gemm(x, w, b)", VECTOR, w=(6, 3), b=(1, 3)),
    "response norm": graph("y = LRN<size=3, alpha=0.5, beta=0.6, bias=2.0>(x)"),
    "norm of groups": graph("y = GroupNormalization<num_groups=2>(x, s, b)", opset=18, s=(2,), b=(2,)),
    "norm of groups by channels": graph("y = GroupNormalization<num_groups=2>(x, s, b)", opset=21, s=(4,), b=(4,)),
    "last of the best": graph(
        "a = Floor(x) b = ArgMax<axis=2, select_last_index=1>(a) "
        "c = ArgMin<axis=-1, select_last_index=1, keepdims=0>(a) d = ArgMax<axis=2>(a) "
        "e = Cast<to=1>(b) f = Cast<to=1>(c) g = Cast<to=1>(d) h = Sub(e, g) k = ReduceSum(h) "
        "y = Add(k, f)"
    ),
    "along the batch": graph("y = Gather<axis=0>(x, k)", k=np.array([-1, 0])),
    "sum of products": graph('y = Einsum<equation="nchw,ck->nkhw">(x, w)', w=(4, 3)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_onnxruntime(case: str) -> None:
    model = CASES[case]
    shape = files.inputs(model)[0][0].shape
    x = torch.randn((2, *shape), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        torch.testing.assert_close(OnnxModule(model)(x), expected(model, x), rtol=1e-4, atol=1e-5)


def check_rebuilt(
    model: onnx.ModelProto, module: OnnxModule, imported: ImportedModel, x: torch.Tensor
) -> None:
    """Check that the network of the imported architecture, with the file's weights, has the outputs
    of onnxruntime."""
    again = network.rebuilt(imported.architecture)
    again.load_state_dict(imported.state_dict(module))
    wanted = expected(model, x)
    with torch.no_grad():
        torch.testing.assert_close(again.eval()(x), wanted, rtol=1e-4, atol=1e-5)
        # A part of the batch alone, too.
        torch.testing.assert_close(again(x[:1]), wanted[:1], rtol=1e-4, atol=1e-5)


def classifier(batch: str = "N") -> onnx.ModelProto:
    """A network with everything that an import must decide: weights, statistics, constants, sizes,
    a linear layer."""
    size = np.array([1, 36]) if batch == "1" else np.array([0, 36])
    return graph(
        "a = Conv<pads=[1,1,1,1]>(x, w) b = BatchNormalization<momentum=0.8>(a, g, h, m, v) c = Relu(b) "
        "d = ReduceMean<axes=[1], keepdims=0>(c) e = Reshape(d, size) f = Mul(e, two) k = MatMul(f, t) y = Add(k, u)",
        f"float[{batch},4,6,6] x",
        w=(3, 4, 3, 3), g=(3,), h=(3,), m=(3,), v=np.array([1.0, 2, 3]), size=size, two=2.0, t=(36, 5), u=(5,),
    )  # fmt: skip


@pytest.mark.parametrize("batch", ["N", "1"])
def test_an_imported_graph_computes_what_the_file_does(batch: str) -> None:
    model = classifier(batch)
    inputs, fixed = files.inputs(model)
    assert (inputs, fixed) == ([Input((4, 6, 6))], None if batch == "N" else 1)
    module = OnnxModule(model, fixed)
    imported = import_model(module, inputs)
    ops = [layer.op for layer in imported.architecture.layers]
    assert ops == ["ip", "convolution", "batch_norm", "relu", "mean", "view", "mul", "linear", "op"]
    assert imported.params == 108 + 6 + 185
    norm = imported.architecture.layers[2].attributes
    assert norm["momentum"] == 0.2 and "eps" not in norm
    check_rebuilt(model, module, imported, torch.randn(1, 4, 6, 6))


def test_statistics_that_no_batch_would_change_are_the_mean_of_all() -> None:
    # As PyTorch writes a batch normalisation without a momentum.
    weights = {"g": (4,), "h": (4,), "m": (4,), "v": np.array([1.0, 2, 3, 4])}
    module = OnnxModule(graph("y = BatchNormalization<momentum=1.0>(x, g, h, m, v)", **weights))
    imported = import_model(module, [Input((4, 6, 6))])
    assert imported.architecture.layers[1].attributes["momentum"] == "nan"
    again = network.rebuilt(imported.architecture)
    again.load_state_dict(imported.state_dict(module), strict=True)
    x = torch.randn(5, 4, 6, 6) + 3
    again.train()(x)
    (mean,) = (value for name, value in again.named_buffers() if name.endswith("running_mean"))
    torch.testing.assert_close(mean, x.mean((0, 2, 3)))


def test_statistics_are_computed_from_constants() -> None:
    model = graph(
        "m = ConstantOfShape(n) v = Add(m, one) y = BatchNormalization(x, g, h, m, v)",
        n=np.array([4]), one=np.float32(1.5), g=(4,), h=(4,),
    )  # fmt: skip
    module = OnnxModule(model)
    imported = import_model(module, [Input((4, 6, 6))])
    assert [layer.op for layer in imported.architecture.layers] == ["ip", "batch_norm", "op"]
    check_rebuilt(model, module, imported, torch.randn(3, 4, 6, 6))


def test_a_normalisation_of_one_channel_has_its_own_weights() -> None:
    weights = {"w": (1, 4, 3, 3), "g": (1,), "h": (1,), "m": (1,), "v": np.array([2.0])}
    model = graph("a = Conv(x, w) y = BatchNormalization(a, g, h, m, v)", **weights)
    module = OnnxModule(model)
    imported = import_model(module, [Input((4, 6, 6))])
    assert imported.params == 36 + 2
    check_rebuilt(model, module, imported, torch.randn(3, 4, 6, 6))


def test_a_file_for_batches_of_four_is_a_network_for_any() -> None:
    size = np.array([4, -1])
    model = graph(
        "a = Conv(x, w) b = Reshape(a, s) y = MatMul(b, v)",
        "float[4,4,6,6] x",
        w=(2, 4, 3, 3),
        s=size,
        v=(32, 5),
    )
    inputs, batch = files.inputs(model)
    module = OnnxModule(model, batch)
    imported = import_model(module, inputs)
    assert (batch, imported.flops) == (4, 16 * 72 + 32 * 5)
    check_rebuilt(model, module, imported, torch.randn(4, 4, 6, 6))


def test_tables_are_embeddings() -> None:
    model = graph(
        "a = Gather<axis=0>(table, x) y = ReduceMean<axes=[1]>(a)", "int64[N,7] x", table=(9, 4)
    )
    imported = import_model(OnnxModule(model), files.inputs(model)[0])
    assert [layer.op for layer in imported.architecture.layers] == ["ip", "embedding", "mean", "op"]
    assert imported.params == 36


def test_sizes_are_computed_as_the_file_does() -> None:
    model = graph(
        "s = Shape(x) h = Slice(s, two, three) f = Cast<to=1>(h) q = Div(f, four) k = Mul(q, f) d = Floor(k) "
        "e = Ceil(q) m = Mul(d, e) c = Cast<to=7>(m) w = Cast<to=7>(wide) t = Concat<axis=0>(first, c, w) "
        "y = Reshape(x, t)",
        two=np.array([2]), three=np.array([3]), four=[4.0], wide=[8.0], first=np.array([0]),
    )  # fmt: skip
    imported = import_model(OnnxModule(model), files.inputs(model)[0])
    x = torch.randn(2, 4, 6, 6)
    assert torch.equal(network.rebuilt(imported.architecture)(x), expected(model, x))


def test_sizes_next_to_the_batch_are_computed() -> None:
    model = graph(
        "s = Shape(x) f = Cast<to=1>(s) q = Div(f, four) d = Floor(q) k = Cast<to=7>(d) h = Slice(k, two, three) "
        "n = Slice(s, none, one) t = Concat<axis=0>(n, h, rest) y = Reshape(x, t)",
        four=[4.0], none=np.array([0]), one=np.array([1]), two=np.array([2]), three=np.array([3]),
        rest=np.array([144]),
    )  # fmt: skip
    imported = import_model(OnnxModule(model), files.inputs(model)[0])
    x = torch.randn(2, 4, 6, 6)
    assert torch.equal(network.rebuilt(imported.architecture)(x), expected(model, x))


REFUSED = {
    "operator": (
        lambda: OnnxModule(graph("y = Convv(x)")),
        "the ONNX operator 'Convv' has no counterpart here; known",
    ),
    "domain": (
        lambda: OnnxModule(graph("y = other.Conv(x)")),
        "the operator Conv of the domain 'other' is not one",
    ),
    "shape": (
        lambda: files.inputs(graph("y = Relu(x)", "float[N,3,H,W] x")),
        "has the shape Nx3xHxW: give --input",
    ),
    "texts": (
        lambda: files.inputs(graph("y = Identity(x)", "string[N,3] x")),
        "'x' has values of the type string",
    ),
    "small": (
        lambda: files.inputs(graph("y = Identity(x)", "float8e4m3fn[N,3] x")),
        "of the type float8",
    ),
    "wide": (lambda: files.inputs(graph("y = Identity(x)", "uint64[N,3] x")), "of the type uint64"),
    "attribute": (
        lambda: OnnxModule(graph("y = Concat(x, x)"))(torch.ones(2, 4)),
        "the node 'y' of the operator Concat cannot be read: KeyError: 'axis'",
    ),
    "one size": (
        lambda: import_model(
            OnnxModule(graph("y = Reshape(x, s)", s=np.array([2, 144]))), [Input((4, 6, 6))]
        ),
        "the graph of the file takes batches of one size",
    ),
    "missing": (
        lambda: OnnxModule(graph("y = Add(x, z)"))(torch.ones(1)),
        "has the input 'z', which no node gives",
    ),
    "training": (
        lambda: OnnxModule(graph("y = BatchNormalization<training_mode=1>(x, w, w, w, w)", w=(4,)))(
            torch.ones(2, 4)
        ),
        "the node 'y' of the operator BatchNormalization is in training mode",
    ),
    "dilations of a mean": (
        lambda: OnnxModule(
            graph("y = AveragePool<kernel_shape=[2,2], dilations=[2,1]>(x)", opset=19)
        )(torch.ones(1, 4, 6, 6)),
        r"the node 'y' of the operator AveragePool has the dilations \[2, 1\]",
    ),
    "batches of indices": (
        lambda: OnnxModule(graph("y = GatherND<batch_dims=1>(x, w)", w=np.array([[0], [1]])))(
            torch.ones(2, 4)
        ),
        "the node 'y' of the operator GatherND has batch_dims 1, and 0 alone is read",
    ),
    "values": (
        lambda: OnnxModule(graph("a = Cast<to=7>(x) y = Reshape(x, a)", "float[N] x"))(
            torch.ones(1)
        ),
        "depends on values of a tensor",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_imported_says_why(case: str) -> None:
    make, reason = REFUSED[case]
    with pytest.raises(UsageError, match=reason):
        make()


def test_files_that_hold_no_model(tmp_path: Path) -> None:
    text = tmp_path / "text.onnx"
    empty = tmp_path / "empty.onnx"
    old = tmp_path / "old.onnx"
    text.write_text("no model")
    empty.touch()
    old.write_bytes(graph("y = Relu(x)", opset=7).SerializeToString())
    for path, reason in (
        (text, "text.onnx is no ONNX model"),
        (empty, "empty.onnx is no ONNX model: it has no graph"),
        (
            old,
            "has operators of version 7, and 9 is the oldest that is read: convert it with onnx.version",
        ),
        (tmp_path / "none.onnx", "none.onnx cannot be read: No such file"),
    ):
        with pytest.raises(UsageError, match=reason) as caught:
            files.read(path)

        assert "\n" not in str(caught.value)
