"""Imported models in training: the gradients, the randomness and the running statistics of the
model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import _pytree

from archive.architecture.aten.wiring import Input
from archive.errors import ArchiveError
from archive.trainer.intake import checking, exporting, tracing
from archive.trainer.intake.checking import reseeded
from archive.trainer.intake.models import ImportedModel, import_model
from archive.trainer.nn.aten import network
from tests.support import whole

pytestmark = pytest.mark.lasts(1)


class Applied(nn.Module):
    """A model that computes a function of itself and its inputs."""

    def __init__(self, call: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.call = call
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Tensor) -> Any:
        return self.call(self, *inputs)


def without_gradient(model: Any, x: Tensor) -> Tensor:
    hidden = model.a(x)
    with torch.no_grad():
        change = hidden.round() - hidden

    return model.b(hidden + change)


def with_noise(model: Any, x: Tensor) -> Tensor:
    hidden = model.a(x)
    if model.training:
        hidden = hidden + torch.randn_like(hidden) * 0.5

    return model.b(hidden)


def with_dropped_paths(model: Any, x: Tensor) -> Tensor:
    hidden = model.a(x).relu_()
    branch = model.c(hidden)
    if model.training:
        kept = x.new_empty((x.shape[0], 1)).bernoulli_(0.5).div_(0.5)
        branch = branch * kept

    hidden = hidden + branch
    return model.b(hidden)


def with_a_residual_block(model: Any, x: Tensor) -> Tensor:
    hidden = model.a(x)
    branch = model.c(hidden)
    if model.training:
        branch = branch * torch.empty((x.shape[0], 1)).bernoulli_(0.5).div_(0.5)
    # In place, as the blocks of torchvision: what changes differs with the mode.
    branch += hidden
    return model.b(branch)


class Frozen(nn.BatchNorm1d):
    """A batch normalisation that stays in evaluation mode."""

    def train(self, mode: bool = True) -> Any:
        return super().train(False)


def dropped_twice(model: Any, x: Tensor) -> Tensor:
    hidden = model.a(x)
    return F.dropout(hidden, 0.5, model.training, inplace=True) + hidden


def with_dropout_of(share: float) -> Callable[..., Tensor]:
    return lambda model, x: model.b(F.dropout(model.a(x), share, model.training))


def with_modes_read_for_nothing(model: Any, x: Tensor) -> Tensor:
    share = 0.0 if model.training else 0
    hidden = model.a(x)
    return model.b(hidden * torch.rand_like(hidden) if share else hidden)


def with_other_weights_in_training(model: Any, x: Tensor) -> Tensor:
    return (model.c if model.training else model.b)(model.a(x))


def without_gradients_in_training(model: Any, x: Tensor) -> Tensor:
    with torch.set_grad_enabled(not model.training):
        hidden = model.a(x)

    return model.b(hidden)


def layers(**others: Any) -> dict[str, Any]:
    return {"a": nn.Linear(6, 4), "b": nn.Linear(4, 2), **others}


def batch_norm(model: Any, x: Tensor, training: bool) -> Tensor:
    norm = model.norm
    return F.batch_norm(
        model.a(x), norm.running_mean, norm.running_var, norm.weight, norm.bias, training
    )


def encoder(**settings: Any) -> nn.Module:
    return nn.TransformerEncoderLayer(8, 2, 16, 0.4, batch_first=True, **settings)


def recurrent(kind: type[nn.Module], item: Any, **settings: Any) -> nn.Module:
    return Applied(
        lambda model, x: item(model.cells(x)), cells=kind(6, 5, batch_first=True, **settings)
    )


# The model, the shape of its input, and the operations that must be among its layers.
CHEAP: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], set[str]]] = {
    "dropout in place": (
        lambda: nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5, inplace=True), nn.Linear(8, 2)),
        (6,),
        {"dropout"},
    ),
    "dropout of what is read again": (
        lambda: Applied(dropped_twice, **layers()),
        (6,),
        {"dropout"},
    ),
    "dropout of channels": (
        lambda: nn.Sequential(
            nn.Conv1d(3, 4, 1),
            nn.Dropout1d(inplace=True),
            nn.FeatureAlphaDropout(0.4, inplace=True),
        ),
        (3, 5),
        {"feature_dropout", "feature_alpha_dropout"},
    ),
    "dropout at all times": (
        lambda: Applied(lambda m, x: F.dropout(m.a(x)), **layers()),
        (6,),
        {"native_dropout"},
    ),
    "dropout by a branch": (
        lambda: Applied(lambda m, x: F.dropout(m.a(x)) if m.training else m.a(x), **layers()),
        (6,),
        {"dropout"},
    ),
    "attention": (
        lambda: Applied(
            lambda m, x: F.scaled_dot_product_attention(x, m.a(x), x, dropout_p=0.3 * m.training),
            a=nn.Linear(6, 6),
        ),
        (5, 6),
        {"scaled_dot_product_attention"},
    ),
    "straight through": (
        lambda: Applied(lambda m, x: m.b((h := m.a(x)) + (h.round() - h).detach()), **layers()),
        (6,),
        {"detach"},
    ),
    "no gradient": (lambda: Applied(without_gradient, **layers()), (6,), {"detach"}),
    "noise": (lambda: Applied(with_noise, **layers()), (6,), {"by_mode"}),
    "stochastic depth": (
        lambda: Applied(with_dropped_paths, **layers(c=nn.Linear(4, 4))),
        (6,),
        {"by_mode"},
    ),
    "residual block": (
        lambda: Applied(with_a_residual_block, **layers(c=nn.Linear(4, 4))),
        (6,),
        {"by_mode"},
    ),
    "instance statistics": (
        lambda: nn.Sequential(
            nn.Conv1d(3, 4, 1), nn.InstanceNorm1d(4, track_running_stats=True, affine=True)
        ),
        (3, 5),
        {"instance_norm"},
    ),
    "statistics of a batch alone": (
        lambda: Applied(lambda m, x: batch_norm(m, x, True), **layers(norm=nn.BatchNorm1d(4))),
        (6,),
        {"batch_norm"},
    ),
    "frozen statistics": (
        lambda: Applied(lambda m, x: batch_norm(m, x, False), **layers(norm=nn.BatchNorm1d(4))),
        (6,),
        {"_native_batch_norm_legit_no_training"},
    ),
    "frozen norm": (
        lambda: nn.Sequential(nn.Linear(6, 4), Frozen(4)),
        (6,),
        {"_native_batch_norm_legit_no_training"},
    ),
    "statistics of all batches": (
        lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4, momentum=None)),
        (6,),
        {"batch_norm"},
    ),
    "rrelu": (lambda: nn.Sequential(nn.Linear(6, 4), nn.RReLU(inplace=True)), (6,), {"rrelu"}),
    "lstm": (
        lambda: recurrent(
            nn.LSTM, lambda out: out[0], num_layers=2, dropout=0.3, bidirectional=True, proj_size=3
        ),
        (7, 6),
        {"lstm"},
    ),
    "gru": (lambda: recurrent(nn.GRU, lambda out: out[1], bias=False), (7, 6), {"gru"}),
    "rnn": (lambda: recurrent(nn.RNN, lambda out: out[0], nonlinearity="relu"), (7, 6), {"rnn"}),
    "size of the batch": (
        lambda: Applied(lambda m, x: m.a(x) * x.shape[0] ** 0.5 / x.numel(), **layers()),
        (6,),
        {"mul", "div"},
    ),
}


def check(
    model: nn.Module, shape: tuple[int, ...], dtype: str = "float32", *, precise: bool = False
) -> ImportedModel:
    """Import a model, and compare the network that is built again with it, in both modes.

    Numbers of 64 bits are for deep networks, whose rounding errors grow from layer to layer.
    """
    imported = import_model(model, [Input(shape, dtype)])
    again = network.rebuilt(imported.architecture, seed=1)
    again.load_state_dict(imported.state_dict(model))
    rng = torch.Generator().manual_seed(2)
    if dtype == "float32":
        x = torch.randn((3, *shape), generator=rng)
    else:
        x = torch.zeros((3, *shape), dtype=torch.int64)

    if precise:
        model.double()
        again.double()
        x = x.double() if dtype == "float32" else x

    for training in (False, True):
        expected, computed = (run(each.train(training), x) for each in (model, again))
        torch.testing.assert_close(computed, expected, rtol=1e-3, atol=1e-4, equal_nan=True)

    canonical = imported.architecture.canonical.layers
    state = again.state_dict()
    parameters = dict(again.named_parameters())
    theirs = dict(model.named_parameters(remove_duplicate=False))
    for (at, name), full in imported.names.items():
        own = network.tensor_name(canonical[at], at, name)
        if full not in theirs:
            torch.testing.assert_close(state[own], model.state_dict()[full], rtol=1e-3, atol=1e-4)
            continue

        gradients = parameters[own].grad, theirs[full].grad
        assert (gradients[0] is None) == (gradients[1] is None), full
        if gradients[0] is not None:
            torch.testing.assert_close(*gradients, rtol=1e-2, atol=1e-3)

    assert draws(model, x) == draws(again, x)
    return imported


def run(module: nn.Module, x: Tensor) -> list[Tensor]:
    """Return the outputs of one step, and leave its gradients; each operation draws from the same
    seed."""
    module.zero_grad()
    with reseeded():
        outputs = [
            leaf for leaf in _pytree.tree_leaves(module(x.clone())) if isinstance(leaf, Tensor)
        ]
        total = sum(
            (output * torch.linspace(-1, 1, output.numel()).view(output.shape)).sum()
            for output in outputs
        )
        if isinstance(total, Tensor) and total.requires_grad:
            total.backward()

    return [output.detach() for output in outputs]


def draws(module: nn.Module, x: Tensor) -> bool:
    """Return whether two steps in training differ."""
    torch.manual_seed(0)
    with torch.no_grad():
        first, second = (_pytree.tree_leaves(module.train()(x.clone()))[0] for _ in range(2))

    return not torch.equal(first, second)


# Each has the operation of another case.
VARIANTS = ("dropout by a branch", "frozen statistics", "residual block")


@pytest.mark.parametrize("case", [whole(case) if case in VARIANTS else case for case in CHEAP])
def test_a_network_trains_as_its_model(case: str) -> None:
    torch.manual_seed(0)
    make, shape, operations = CHEAP[case]
    imported = check(make(), shape)
    assert imported.notes == ()
    assert operations <= {layer.op for layer in imported.architecture.layers}
    if operations & {"lstm", "gru", "rnn"}:
        assert len(imported.architecture.layers) <= 4


def attention(dropout: float) -> nn.Module:
    part = nn.MultiheadAttention(8, 2, dropout, batch_first=True)
    return Applied(lambda m, x: m.t(x, x, x)[0], t=part)


@pytest.mark.parametrize(
    ("make", "shape", "traces", "decompositions"),
    [
        (lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)), (6,), 1, 1),
        (lambda: attention(0.0), (5, 8), 1, 1),
        (lambda: attention(0.4), (5, 8), 2, 1),
        (lambda: Applied(with_a_residual_block, **layers(c=nn.Linear(4, 4))), (6,), 2, 1),
        (lambda: Applied(with_dropout_of(0.5), **layers()), (6,), 1, 1),
        (lambda: Applied(with_modes_read_for_nothing, **layers()), (6,), 1, 1),
        (lambda: Applied(with_other_weights_in_training, **layers(c=nn.Linear(4, 2))), (6,), 2, 1),
        (lambda: Applied(without_gradients_in_training, **layers()), (6,), 2, 1),
    ],
    ids=[
        "layers",
        "attention",
        "dropout of attention",
        "residual block",
        "dropout as a function",
        "modes read for nothing",
        "other weights in training",
        "no gradients in training",
    ],
)
def test_a_model_is_traced_as_often_as_its_modes_differ(
    make: Callable[[], nn.Module],
    shape: tuple[int, ...],
    traces: int,
    decompositions: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: Counter[str] = Counter()

    def count(module: Any, name: str) -> None:
        function = getattr(module, name)

        def counted(*arguments: Any) -> Any:
            calls[name] += 1
            return function(*arguments)

        monkeypatch.setattr(module, name, counted)

    count(tracing, "trace")
    count(exporting, "decompose")
    import_model(make(), [Input(shape)])
    assert calls == {"trace": traces, "decompose": decompositions}


@pytest.mark.parametrize(
    ("flops", "batches"),
    [(0, [3, 1]), (2 * 10**9, [3, 1]), (3 * 10**9, [2, 3, 1]), (10**10, [1, 3])],
)
def test_a_large_network_is_compared_by_fewer_inputs(flops: int, batches: list[int]) -> None:
    assert checking._batches(flops) == batches


def test_a_recurrent_layer_takes_sequences_of_other_lengths() -> None:
    imported = import_model(recurrent(nn.LSTM, lambda out: out[0]), [Input((7, 6))])
    assert network.rebuilt(imported.architecture)(torch.zeros(2, 11, 6)).shape == (2, 11, 5)


class Reversed(torch.autograd.Function):
    """A gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return -gradient


class Averaged(nn.Module):
    """Statistics of its own, which training changes."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 4)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.a(x)
        if self.training:
            with torch.no_grad():
                self.mean.mul_(0.9).add_(hidden.mean(0), alpha=0.1)

        return hidden - self.mean


def branching(model: Any, x: Tensor) -> Tensor:
    if model.training and torch.rand(()).item() < 0.5:
        return model.b(model.a(x)) * 2

    return model.b(model.a(x))


def in_part(frozen: Callable[[nn.Sequential], object]) -> nn.Module:
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    frozen(model)
    return model


SAID: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "gradient": (
        lambda: Applied(lambda m, x: Reversed.apply(m.a(x)), **layers()),
        "Reversed of the model has a backward pass",
    ),
    "statistics": (Averaged, "in training the model changes the buffer mean"),
    "branch": (
        lambda: Applied(branching, **layers()),
        "in training mode the model cannot be exported",
    ),
    "frozen": (
        lambda: in_part(lambda m: m[0].requires_grad_(False)),
        "does not train the parameters 0.weight, 0.bias",
    ),
    "mode": (
        lambda: in_part(lambda m: m[1].eval()),
        "the module 1 of the model is in evaluation mode",
    ),
    "outputs": (
        lambda: Applied(lambda m, x: (m.a(x), m.a(x).tanh()) if m.training else m.a(x), **layers()),
        "in training the model returns 2 tensors, and in evaluation 1",
    ),
    "shared": (
        lambda: Applied(lambda m, x: m.l(m.l(x[:, None])[0])[0], l=nn.GRU(6, 6, batch_first=True)),
        "the steps of the module l are layers",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_no_network_can_keep_is_said(case: str) -> None:
    make, line = SAID[case]
    model = make()
    modes = [module.training for module in model.modules()]
    (note,) = import_model(model, [Input((6,))]).notes
    assert line in note and "\n" not in note
    assert [module.training for module in model.modules()] == modes


def test_a_difference_that_is_not_foreseen_is_measured() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2))
    other = nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    other[0] = model[0]
    other[2] = model[1]
    names = {"0.weight": "0.weight", "2.weight": "1.weight"}
    share, lines = checking.differences(model, other, names, [Input((6,))])
    assert share == 0.0
    assert "in training the network computes other outputs than the model" in lines
    assert (
        "in training the gradient of the parameters 0.weight, 1.weight is not that of the model"
        in lines
    )


IMAGE = (3, 8, 8)
NAMES = (
    *(
        "ReLU",
        "ReLU6",
        "ELU",
        "SELU",
        "CELU",
        "GELU",
        "Sigmoid",
        "Tanh",
        "SiLU",
        "Mish",
        "Hardswish",
        "Hardsigmoid",
    ),
    *(
        "Hardtanh",
        "Hardshrink",
        "Softshrink",
        "Tanhshrink",
        "Softplus",
        "Softsign",
        "LogSigmoid",
        "LeakyReLU",
    ),
    *("PReLU", "RReLU", "GLU", "Dropout", "AlphaDropout", "Identity"),
)
WINDOWED: dict[str, tuple[Any, ...]] = {
    "Conv": (3, 4, 3),
    "ConvTranspose": (3, 4, 3, 2),
    **dict.fromkeys(("BatchNorm", "InstanceNorm"), (3,)),
    "Dropout": (0.4,),
    **dict.fromkeys(("MaxPool", "AvgPool", "AdaptiveMaxPool"), (2,)),
    "AdaptiveAvgPool": (3,),
    "LPPool": (2, 2),
    **dict.fromkeys(("ReflectionPad", "ReplicationPad", "ZeroPad", "CircularPad"), (1,)),
    "ConstantPad": (1, 0.5),
}


def classes_of_torch() -> dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]]:
    """The classes of torch.nn by name, behind a layer with weights."""
    cases: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {}
    for name in NAMES:
        cases[name] = (lambda name=name: nn.Sequential(nn.Linear(6, 6), getattr(nn, name)()), (6,))

    for sides in (1, 2, 3):
        shape = (3, *(6,) * sides)
        for base, arguments in WINDOWED.items():
            kind = getattr(nn, f"{base}{sides}d")
            first = getattr(nn, f"Conv{sides}d")
            cases[kind.__name__] = (
                lambda k=kind, f=first, a=arguments: nn.Sequential(f(3, 3, 1), k(*a)),
                shape,
            )

        norm = getattr(nn, f"BatchNorm{sides}d")
        cases[f"{norm.__name__} of all batches"] = (
            lambda n=norm: nn.Sequential(n(3, momentum=None)),
            shape,
        )
        cases[f"{norm.__name__} of a batch"] = (
            lambda n=norm: nn.Sequential(n(3, track_running_stats=False)),
            shape,
        )

    convolved = {
        **dict.fromkeys(
            ("LocalResponseNorm", "PixelShuffle", "PixelUnshuffle", "ChannelShuffle"), (2,)
        ),
        "Unfold": (3,),
        "FractionalMaxPool2d": (2, 3),
        "GroupNorm": (2, 4),
        "Softmax2d": (),
        "UpsamplingNearest2d": (9,),
    }
    for name, arguments in convolved.items():
        kind = getattr(nn, name)
        cases[name] = (lambda k=kind, a=arguments: nn.Sequential(nn.Conv2d(3, 4, 1), k(*a)), IMAGE)

    for name in ("LayerNorm", "RMSNorm", "RNNCell", "GRUCell", "LSTMCell"):
        sizes = (6, 5) if name.endswith("Cell") else (6,)
        cases[name] = (lambda n=name, a=sizes: getattr(nn, n)(*a), (6,))

    cases["Bilinear"] = (lambda: Applied(lambda m, x: m.b(x, x), b=nn.Bilinear(6, 6, 3)), (6,))
    cases["AdaptiveLogSoftmaxWithLoss"] = (
        lambda: Applied(lambda m, x: m.b.log_prob(x), b=nn.AdaptiveLogSoftmaxWithLoss(6, 10, [4])),
        (6,),
    )
    cases["TransformerEncoderLayer"] = (encoder, (5, 8))
    cases["TransformerEncoder"] = (
        lambda: nn.TransformerEncoder(encoder(norm_first=True), 2, enable_nested_tensor=False),
        (5, 8),
    )
    cases["Transformer"] = (
        lambda: Applied(
            lambda m, x: m.t(x, x), t=nn.Transformer(8, 2, 1, 1, 16, 0.3, batch_first=True)
        ),
        (5, 8),
    )
    cases["MultiheadAttention"] = (
        lambda: Applied(
            lambda m, x: m.t(x, x, x)[0], t=nn.MultiheadAttention(8, 2, 0.4, batch_first=True)
        ),
        (5, 8),
    )
    return cases


CLASSES = classes_of_torch()


@pytest.mark.whole
@pytest.mark.parametrize("name", CLASSES)
def test_classes_of_torch_train_as_they_are(name: str) -> None:
    torch.manual_seed(0)
    make, shape = CLASSES[name]
    assert check(make(), shape).notes == ()


SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
}
HIERARCHICAL = {"hidden_sizes": [8, 8], "depths": [1, 2], "num_stages": 2}
IMAGES = {"image_size": 32, "patch_size": 8}

# Settings of the configuration, and the shape of the input.
OF_TRANSFORMERS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "Bert": ({**SMALL, "vocab_size": 99}, (7,)),
    "Electra": ({**SMALL, "vocab_size": 99, "embedding_size": 16}, (7,)),
    "DistilBert": (
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37, "vocab_size": 99},
        (7,),
    ),
    "Beit": ({**SMALL, **IMAGES, "drop_path_rate": 0.4}, (3, 32, 32)),
    "ViT": ({**SMALL, **IMAGES, "hidden_dropout_prob": 0.2}, (3, 32, 32)),
    "Dinov2": ({**SMALL, **IMAGES, "drop_path_rate": 0.4}, (3, 32, 32)),
    "Swin": (
        {
            "image_size": 32,
            "embed_dim": 16,
            "depths": [1, 1],
            "num_heads": [2, 2],
            "window_size": 4,
            "drop_path_rate": 0.4,
        },
        (3, 32, 32),
    ),
    "ConvNext": ({**HIERARCHICAL, "drop_path_rate": 0.4}, (3, 32, 32)),
    "ConvNextV2": ({**HIERARCHICAL, "drop_path_rate": 0.4}, (3, 32, 32)),
    "ResNet": ({"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 2]}, (3, 32, 32)),
    "Wav2Vec2": (
        {
            **SMALL,
            "conv_dim": [8, 8],
            "conv_kernel": [4, 4],
            "conv_stride": [2, 2],
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 4,
            "num_conv_pos_embedding_groups": 2,
            "layerdrop": 0.0,
            "apply_spec_augment": False,
        },
        (200,),
    ),
}
OF_TORCHVISION = (
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "mnasnet0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
)
OF_TIMM = (
    "test_byobnet",
    "test_convnext",
    "test_efficientnet",
    "test_mambaout",
    "test_nfnet",
    "test_resnet",
    "test_vit",
    "test_vit3",
)
OF_PACKAGES = (
    *(f"torchvision:{name}" for name in OF_TORCHVISION),
    *(f"timm:{name}" for name in OF_TIMM),
    *(f"transformers:{name}" for name in OF_TRANSFORMERS),
)


def of_package(reference: str) -> tuple[nn.Module, Input]:
    package, _, name = reference.partition(":")
    module = pytest.importorskip(package)
    if package == "torchvision":
        from torchvision import models

        return getattr(models, name)(weights=None), Input((3, 64, 64))

    if package == "timm":
        model = module.create_model(name, pretrained=False, drop_path_rate=0.3)
        return model, Input((3, 160, 160))

    settings, shape = OF_TRANSFORMERS[name]
    config = getattr(module, f"{name}Config")(**settings)
    model = getattr(module, f"{name}Model")(config)
    return model, Input(shape, "int64" if "vocab_size" in settings else "float32")


@pytest.mark.whole
@pytest.mark.lasts(20)
@pytest.mark.parametrize("reference", OF_PACKAGES)
def test_models_of_packages_train_as_they_do(reference: str) -> None:
    """One step in training: outputs, gradients and statistics, with the same weights and seed."""
    torch.manual_seed(0)
    model, given = of_package(reference)
    # Those of transformers are small, and draw their noise in the type of the input.
    precise = not reference.startswith("transformers:")
    assert check(model, given.shape, given.dtype, precise=precise).notes == ()


def test_only_an_error_of_the_archive_leaves_the_importer() -> None:
    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Any:
            raise RuntimeError("two\nlines")

    with pytest.raises(ArchiveError, match="two") as caught:
        import_model(Odd(), [Input((6,))])

    assert "\n" not in str(caught.value)
