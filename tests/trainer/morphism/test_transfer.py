"""Network morphism: a grown network computes the function of its parent."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from archive.architecture import traversal
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.spaces import morphism
from archive.spaces.modifiers import apply
from archive.trainer.morphism import transfer
from archive.trainer.morphism.feasibility import operations_between, preserving
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from tests.support import examples
from tests.support.networks.nets import net
from tests.support.strategies import generators, relabelled, space_of

IMAGES = NetworkForm((2, 6, 7), 3, "classification", True)
PLAIN_IMAGES = NetworkForm((2, 6, 7), 3, "classification", False)
VECTORS = NetworkForm((5,), 1, "regression", False)
NORMALISED_VECTORS = NetworkForm((5,), 4, "classification", True)
EVERY = {"cnn": (IMAGES, PLAIN_IMAGES), "mlp": (VECTORS, NORMALISED_VECTORS)}
SEEDS = {
    "cnn": [
        net("cnn", "conv3/8 max-pool conv5/9 fc/8 softmax"),
        net("cnn", "res3/8 conv3/8s2 res5/9s2 avg-pool softmax"),
        net("cnn", "conv3/8 res3/8 res3/8 max-pool fc/9 softmax"),
        net(
            "cnn",
            "conv3/8 res3/8 softmax fc/8 softmax",
            [(0, 1), (1, 2), (2, 3), (1, 4), (4, 5), (3, 6), (5, 6)],
        ),
    ],
    "mlp": [
        net("mlp", "relu/8 tanh/9 linear"),
        net("mlp", "crelu/8 logistic/8 elu/9 softplus/8 leaky-relu/8 linear"),
        net(
            "mlp",
            "tanh/8 elu/9 linear crelu/8 linear",
            [(0, 1), (1, 2), (2, 3), (1, 4), (4, 5), (3, 6), (5, 6)],
        ),
    ],
}
RELAXED = settings(suppress_health_check=list(HealthCheck))


def trained(
    built: NetworkForm, architecture: Architecture, seed: int = 0
) -> dict[str, torch.Tensor]:
    """Weights such as training leaves: no two alike, statistics and factors of normalisations far
    from 0 and 1."""
    draw = torch.Generator().manual_seed(seed)
    weights = builders.build(architecture, built, seed).double().state_dict()
    for name, tensor in weights.items():
        if name.endswith(("norm.weight", "running_var")):
            tensor.copy_(0.5 + torch.rand(tensor.shape, generator=draw, dtype=tensor.dtype))
        elif name.endswith(("bias", "running_mean")):
            tensor.copy_(torch.randn(tensor.shape, generator=draw, dtype=tensor.dtype))

    return weights


def loaded(built: NetworkForm, architecture: Architecture, weights):
    network = builders.build(architecture, built, 99).double().eval()
    network.load_state_dict(weights)
    return network


def outputs(
    built: NetworkForm, architecture: Architecture, weights, inputs: torch.Tensor
) -> torch.Tensor:
    """Return predictions, or log-probabilities: logits differ by a constant where the number of
    decisions does."""
    with torch.no_grad():
        found = loaded(built, architecture, weights)(inputs)

    return found if built.kind == "regression" else found.log_softmax(1)


def inputs_of(built: NetworkForm, count: int = 5) -> torch.Tensor:
    return torch.randn(
        (count, *built.input_shape), generator=torch.Generator().manual_seed(7), dtype=torch.float64
    )


def check_same_function(built, parent, child, weights=None, **options):
    weights = trained(built, parent) if weights is None else weights
    inherited = transfer.inherit(parent, weights, child, built, **options)
    inputs = inputs_of(built)
    expected = outputs(built, parent, weights, inputs)
    assert (outputs(built, child, inherited.weights, inputs) - expected).abs().max() < 1e-10
    return inherited


@st.composite
def networks(draw: st.DrawFn, name: str, steps: int = 8) -> Architecture:
    """Random networks of a space with few units, so that everything in them happens, and fast."""
    space = space_of(name)
    rng = draw(generators())
    found = draw(st.sampled_from(SEEDS[name]))
    for _ in range(draw(st.integers(0, steps))):
        found = space.mutate(found, rng).child if draw(st.booleans()) else grown(found, rng)

    return found


def grown(architecture: Architecture, rng: np.random.Generator) -> Architecture:
    """Apply a random operation; where it cannot be, return the network as it is."""
    every = morphism.choices(architecture)
    calls = every[list(every)[rng.integers(len(every))]]
    try:
        return calls[rng.integers(len(calls))]()
    except InvalidArchitectureError:
        return architecture


def loses_a_projection(
    built: NetworkForm, parent: Architecture, call: partial[Architecture]
) -> bool:
    """Look, layer by layer, whether an operation leaves a residual block without the projection
    that it had."""
    child = call()
    order = list(range(len(parent.layers)))
    if call.func is morphism.skip_concat:
        _, tail, head = call.args
        pools = apply.halvings(parent, tail, head)
        chain = [tail, *range(len(order), len(order) + pools), head]
        edges = [*parent.edges, *pairwise(chain)]
        order = traversal.topological_order([*parent.layers, *[apply.AVERAGE_POOL] * pools], edges)
    elif call.func is not morphism.widen:
        return False

    before = builders.build(parent, built).layers
    after = builders.build(child, built).layers
    had = [
        getattr(before[old], "projection", None) is not None for old in range(len(parent.layers))
    ]
    has = {
        old: getattr(after[new], "projection", None) is not None for new, old in enumerate(order)
    }
    return any(had[old] and not has[old] for old in range(len(parent.layers)))


@pytest.mark.parametrize("name", ["cnn", "mlp"])
@RELAXED
@given(data=st.data())
def test_any_operation_on_any_network_keeps_its_function(name, data):
    parent = data.draw(networks(name))
    built = data.draw(st.sampled_from(EVERY[name]))
    every = morphism.choices(parent)
    call = data.draw(st.sampled_from(every[data.draw(st.sampled_from(sorted(every)))]))
    try:
        child = call()
    except InvalidArchitectureError:
        assume(False)

    if loses_a_projection(built, parent, call):
        assert not preserving(parent, child, built.input_shape)
    else:
        check_same_function(built, parent, child)


@pytest.mark.parametrize("name", ["cnn", "mlp"])
@settings(examples(0.5), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_number_of_operations_is_one_step_and_many(name, data):
    parent = data.draw(networks(name, steps=4))
    rng = data.draw(generators())
    built = data.draw(st.sampled_from(EVERY[name]))
    weights = trained(built, parent)
    current = parent
    learned = weights
    for _ in range(data.draw(st.integers(2, 6))):
        child = grown(current, rng)
        if child != current and preserving(current, child, built.input_shape):
            current, learned = child, check_same_function(built, current, child, learned).weights

    inputs = inputs_of(built)
    expected = outputs(built, parent, weights, inputs)
    assert (outputs(built, current, learned, inputs) - expected).abs().max() < 1e-10
    check_same_function(built, parent, current, weights)


@pytest.mark.parametrize("name", ["cnn", "mlp"])
@RELAXED
@given(data=st.data())
def test_feasible_children_keep_the_function(name, data):
    parent = data.draw(networks(name, steps=3))
    rng = data.draw(generators())
    built = data.draw(st.sampled_from(EVERY[name]))
    child = parent
    for _ in range(data.draw(st.integers(1, 3))):
        child = (
            space_of(name).mutate(child, rng).child
            if data.draw(st.booleans())
            else grown(child, rng)
        )

    if preserving(parent, child, built.input_shape):
        check_same_function(built, parent, child)
    else:
        with pytest.raises(InvalidArchitectureError, match="cannot inherit from"):
            transfer.inherit(parent, trained(built, parent), child, built)


@RELAXED
@given(data=st.data())
def test_the_order_of_layers_does_not_matter(data):
    parent = data.draw(networks("cnn"))
    rng = data.draw(generators())
    child = grown(parent, rng)
    assume(preserving(parent, child, IMAGES.input_shape))
    check_same_function(
        IMAGES, relabelled(parent, data.draw(st.integers(0, 99))), relabelled(child, 3)
    )


@pytest.mark.parametrize("name", ["cnn", "mlp"])
def test_a_network_inherits_from_itself_to_the_last_bit(name):
    for parent in SEEDS[name]:
        weights = trained(EVERY[name][0], parent)
        inherited = transfer.inherit(parent, weights, parent, EVERY[name][0])
        assert inherited.operations == inherited.identities == ()
        assert all(torch.equal(inherited.weights[key], tensor) for key, tensor in weights.items())


def test_residual_block_without_its_projection_is_infeasible():
    parent = net("cnn", "conv3/8 res3/16 fc/8 softmax")
    widened = morphism.widen(parent, 1)
    assert not preserving(parent, widened, (1, 8, 8))
    with pytest.raises(InvalidArchitectureError, match="cannot inherit from"):
        operations_between(parent, widened, (1, 8, 8))

    # One more channel, and there is a projection again; and where there never was one, widening
    # makes one.
    assert preserving(parent, morphism.widen(parent, 1, 17), (1, 8, 8))
    check_same_function(
        IMAGES, net("cnn", "conv3/8 res3/8 softmax"), net("cnn", "conv3/16 res3/8 softmax")
    )
    check_same_function(
        IMAGES, net("cnn", "conv3/8 res3/8 softmax"), net("cnn", "conv3/16 res3/16 softmax")
    )


def test_whether_a_stride_needs_a_projection_depends_on_the_image():
    parent = net("cnn", "conv3/8 res3/16s2 softmax")
    child = net("cnn", "conv3/16 res3/16s2 softmax")
    assert preserving(parent, child, (1, 8, 8))
    assert not preserving(parent, child, (1, 1, 1))


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ("conv3/9 fc/8 softmax", "conv3/8 fc/8 softmax"),
        ("conv3/8 fc/8 softmax", "conv5/8 fc/8 softmax"),
        ("conv3/8 conv3/8 softmax", "conv3/8 conv3/8s2 softmax"),
        ("conv3/8 conv3/8 softmax", "conv3/8 softmax"),
        ("conv3/8 conv3/8 softmax", "conv3/8 max-pool conv3/8 softmax"),
        ("conv3/8 softmax", "conv3/8 conv3/7 softmax"),
        ("max-pool softmax", "avg-pool softmax"),
        ("max-pool softmax", "max-pool conv3/8 softmax"),
    ],
)
def test_removals_are_infeasible(parent, child):
    assert not preserving(net("cnn", parent), net("cnn", child), (1, 8, 8))


@pytest.mark.parametrize("op", ["softplus", "logistic", "tanh", "relu", "elu", "leaky-relu"])
def test_inserted_layer_must_be_the_identity(op):
    assert not preserving(net("mlp", "tanh/8 linear"), net("mlp", f"tanh/8 {op}/8 linear"), (5,))
    if op in ("relu", "elu", "leaky-relu"):
        check_same_function(
            VECTORS, net("mlp", "logistic/8 linear"), net("mlp", f"logistic/8 {op}/8 linear")
        )


def test_both_signs_are_kept_over_several_layers():
    child = net("mlp", "tanh/9 crelu/9 crelu/9 relu/18 crelu/18 linear")
    for built in EVERY["mlp"]:
        check_same_function(built, net("mlp", "tanh/9 linear"), child)


def test_a_network_of_another_space_or_with_another_decision_is_no_child():
    assert not preserving(net("mlp", "relu/8 linear"), net("cnn", "conv3/8 softmax"), (5,))
    parent = SEEDS["mlp"][2]
    assert not preserving(net("mlp", "tanh/8 elu/9 linear"), parent, (5,))


def test_a_duplicated_path_is_a_copy_and_inherits_as_one():
    parent = net("cnn", "conv3/8 conv5/9 fc/8 softmax")
    child = apply.dup_path(parent, [1, 2, 3])
    inherited = check_same_function(IMAGES, parent, child)
    copies = [inherited.weights[f"layers.{at}.filter.weight"] for at in (2, 3)]
    assert torch.equal(*copies)
    twice = apply.dup_path(parent, [0, 1, 2, 3, 4, 5])
    assert check_same_function(IMAGES, parent, twice)


def test_skip_over_pools_ignores_new_channels():
    parent = net("cnn", "conv3/8 max-pool conv3/9 max-pool fc/8 softmax")
    child = morphism.skip_concat(parent, 1, 5)
    assert [layer.op for layer in child.layers].count("avg-pool") == 2
    inherited = check_same_function(IMAGES, parent, child)
    assert any(text.startswith("skip_concat") for text in inherited.operations)


def test_operations_are_described():
    parent = net("cnn", "conv3/8 max-pool fc/8 softmax")
    child = morphism.skip_add(morphism.deepen(morphism.widen(parent, 1), 1, "conv5"), 2, "res3")
    assert operations_between(parent, child, (1, 8, 8)) == (
        "widen 1 8->16",
        "deepen 2 conv5/16",
        "skip_add 3 res3/16",
    )


def gradients_of_copies(noise=0.0):
    parent = net("cnn", "conv3/8 fc/8 softmax")
    child = net("cnn", "conv3/16 fc/8 softmax")
    inherited = transfer.inherit(parent, trained(IMAGES, parent), child, IMAGES, noise=noise)
    network = loaded(IMAGES, child, inherited.weights).train()
    targets = torch.tensor([0, 1, 2, 0, 1])
    torch.nn.functional.cross_entropy(network(inputs_of(IMAGES)), targets).backward()
    weight = network.layers[1].filter.weight
    return weight.detach(), weight.grad


def test_copies_diverge_without_noise():
    weight, gradient = gradients_of_copies()
    assert torch.equal(weight[:8], weight[8:])
    assert (
        (gradient[:8] - gradient[8:]).abs().amax(dim=(1, 2, 3)) > 1e-3 * gradient.abs().max()
    ).all()


def test_noise_is_optional_and_only_on_new_weights():
    weight, _ = gradients_of_copies(noise=1e-3)
    plain, _ = gradients_of_copies()
    assert torch.equal(weight[:8], plain[:8])
    assert 0 < (weight[8:] - plain[8:]).abs().max() < 5e-3 * plain.std() * 2
    parent = net("mlp", "relu/8 linear")
    child = net("mlp", "relu/8 relu/8 linear")
    noisy = transfer.inherit(parent, trained(VECTORS, parent), child, VECTORS, noise=1e-3)
    change = noisy.weights["layers.2.affine.weight"] - torch.eye(8)
    assert 0 < change.abs().max() < 1e-2


def test_the_same_seed_gives_the_same_weights():
    parent = net("cnn", "conv3/8 softmax")
    child = net("cnn", "conv3/20 res3/20 softmax")
    first, again, other = (
        transfer.inherit(parent, trained(IMAGES, parent), child, IMAGES, seed=s) for s in (1, 1, 2)
    )
    assert all(torch.equal(first.weights[name], again.weights[name]) for name in first.weights)
    assert not all(torch.equal(first.weights[name], other.weights[name]) for name in first.weights)


def test_single_precision_stays_single():
    parent = net("cnn", "conv3/8 softmax")
    child = net("cnn", "conv3/20 res3/20 softmax")
    weights = builders.build(parent, IMAGES, 3).state_dict()
    inherited = transfer.inherit(parent, weights, child, IMAGES)
    assert {tensor.dtype for tensor in inherited.weights.values()} == {torch.float32, torch.int64}
    builders.build(child, IMAGES).load_state_dict(inherited.weights)


def settled(built: NetworkForm, architecture: Architecture, inputs: torch.Tensor):
    """Weights whose normalisations have the statistics of these inputs, as after training."""
    network = builders.build(architecture, built, 5).double()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            module.momentum = 1.0

    with torch.no_grad():
        for _ in range(4):
            network.train()(inputs)

    return network.state_dict()


def test_calibrated_child_trains_on_from_its_parents_loss():
    parent = net("cnn", "conv3/8 max-pool conv3/9 fc/8 softmax")
    child = net("cnn", "conv3/8 conv3/8 max-pool res3/8 conv3/9 fc/8 fc/8 softmax")
    inputs = inputs_of(IMAGES, 400)
    weights = settled(IMAGES, parent, inputs)
    inherited = transfer.inherit(parent, weights, child, IMAGES)
    assert set(inherited.identities) == {"layers.2.filter.norm", "layers.7.norm"}
    expected = loaded(IMAGES, parent, weights)
    plain, calibrated = (loaded(IMAGES, child, inherited.weights) for _ in range(2))
    transfer.calibrate(calibrated, inherited.identities, inputs)
    with torch.no_grad():
        assert (calibrated.eval()(inputs) - expected.eval()(inputs)).abs().max() < 1e-10
        wanted = expected.train()(inputs)
        assert (calibrated.train()(inputs) - wanted).abs().max() < 0.05 * (
            plain.train()(inputs) - wanted
        ).abs().max()
