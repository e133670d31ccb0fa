"""Decoders as torch modules: exact counts, causality, caches, and recurrences beside slow oracles."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from archive.architecture.decoders import costs as exact
from archive.architecture.decoders.design import Block
from archive.architecture.decoders.parts import (
    Attention,
    GatedDelta,
    Gelu,
    Mamba2,
    MixtureOfExperts,
    SwiGlu,
)
from archive.errors import InvalidArchitectureError
from archive.trainer.nn import builders, costs
from archive.trainer.nn.decoders.feed_forward import Experts
from archive.trainer.nn.decoders.gated_delta import GatedDeltaMixer
from archive.trainer.nn.decoders.recurrences import gated_delta, state_space
from archive.trainer.protocols.networks import NetworkForm
from tests.support.networks.decoders import FORM, network_of, sampled

MIXERS = [
    Attention(4, 2, 4, 10_000.0),
    Attention(4, 1, 4, 10_000.0, 3),
    GatedDelta(2, 8),
    Mamba2(2, 16, 4),
]
MIXER_NAMES = ["attention", "sliding", "delta", "mamba2"]


def tokens(length: int, count: int = 2, vocabulary: int = 11) -> Tensor:
    generator = torch.Generator().manual_seed(length)
    return torch.randint(vocabulary, (count, length), generator=generator)


def test_parameters_and_costs_are_those_of_the_formulas():
    for seed, network in enumerate(sampled(30, seed=4)):
        module = builders.build(network, FORM, seed)
        assert exact.params(network) == sum(p.numel() for p in module.parameters())
        assert builders.costs(network, FORM) == costs.measure(module, FORM.input_shape)


def test_matrices_multiply_as_often_as_counted():
    # Without mixers, every multiply-add is one of a matrix.
    network = network_of(Block(None, Gelu(32)), Block(None, SwiGlu(8)))
    module = builders.build(network, FORM).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(tokens(12, count=1))

    assert counter.get_total_flops() // 2 == builders.costs(network, FORM).flops


@pytest.mark.parametrize("mixer", MIXERS, ids=MIXER_NAMES)
@pytest.mark.parametrize("length", [2, 12, 41])
def test_a_place_depends_on_earlier_tokens_alone(mixer, length):
    blocks = [Block(mixer, MixtureOfExperts(8, 3, 2), parallel=True), Block(mixer)]
    module = builders.build(network_of(*blocks), FORM, 1).eval()
    first = tokens(length)
    second = first.clone()
    half = length // 2
    second[:, half:] = (second[:, half:] + 1) % 11
    with torch.no_grad():
        before = module(first)
        after = module(second)

    torch.testing.assert_close(before[:, :half], after[:, :half], rtol=1e-5, atol=1e-5)
    # And on its own token.
    assert (before[:, half] - after[:, half]).abs().max() > 1e-3


def test_generation_with_a_cache_equals_the_full_pass():
    for seed, network in enumerate([*sampled(12, seed=2), network_of(*map(Block, MIXERS))]):
        module = builders.build(network, FORM, seed).eval()
        sequence = tokens(45)
        cache = module.new_cache()
        parts = []
        for first, last in [(0, 7), (7, 8), (8, 9), (9, 40), *((k, k + 1) for k in range(40, 45))]:
            parts.append(module.extend(sequence[:, first:last], cache))

        torch.testing.assert_close(torch.cat(parts, 1), module(sequence), rtol=1e-4, atol=1e-4)
        # Numbers of two sequences, of four bytes here and of two in the cost.
        assert cache.bytes() == 2 * 2 * exact.kv_cache_bytes(network, 45)


def test_generated_tokens_are_the_likeliest():
    module = builders.build(network_of(*map(Block, MIXERS)), FORM, 3).eval()
    generated = module.generate(tokens(5), 6)
    assert generated.shape == (2, 11)
    with torch.no_grad():
        likeliest = module(generated).argmax(-1)

    assert torch.equal(likeliest[:, 4:-1], generated[:, 5:])
    generator = torch.Generator().manual_seed(0)
    drawn = module.generate(tokens(5), 20, temperature=2.0, generator=generator)
    assert len({*drawn[0].tolist()}) > 3


def recur(q, k, v, a, b, state):
    """The recurrences position by position; `b` is None for a state space."""
    outputs = []
    for t in range(v.shape[2]):
        state = state * a[:, :, t, None, None].exp()
        value = v[:, :, t]
        if b is not None:
            value = b[:, :, t, None] * (value - torch.einsum("nhsp,nhs->nhp", state, k[:, :, t]))

        state = state + k[:, :, t, :, None] * value[:, :, None]
        outputs.append(torch.einsum("nhsp,nhs->nhp", state, q[:, :, t]))

    return torch.stack(outputs, 2), state


@pytest.mark.parametrize("length", [1, 7, 8, 20])
@pytest.mark.parametrize("rule", ["delta", "state space"])
def test_chunks_equal_the_recurrence(length, rule):
    generator = torch.Generator().manual_seed(length)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    shape = (2, 3, length)
    q, k = draw(*shape, 4), F.normalize(draw(*shape, 4), dim=-1)
    v = draw(*shape, 5).requires_grad_()
    # Decays from none to nearly all, within one chunk.
    a = -8 * torch.rand(shape, generator=generator, dtype=torch.float64) ** 3
    b = torch.rand(shape, generator=generator, dtype=torch.float64)
    state = draw(2, 3, 4, 5)
    if rule == "delta":
        outputs, last = gated_delta(q, k, v, a, b, state, chunk=8)
        expected, expected_last = recur(q, k, v, a, b, state)
    else:
        outputs, last = state_space(q, k, v, a, state, chunk=8)
        expected, expected_last = recur(q, k, v, a, None, state)

    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(last, expected_last)
    weights = draw(*outputs.shape)
    (gradient,) = torch.autograd.grad((outputs * weights).sum(), v)
    (other,) = torch.autograd.grad((expected * weights).sum(), v)
    torch.testing.assert_close(gradient, other)


def test_strong_decays_stay_finite():
    shape = (1, 1, 64)
    a = torch.full(shape, -200.0, requires_grad=True)
    q = F.normalize(torch.ones(*shape, 4), dim=-1)
    outputs, _ = gated_delta(q, q, torch.ones(*shape, 4), a, torch.ones(shape))
    outputs.sum().backward()
    assert outputs.isfinite().all()
    assert a.grad.isfinite().all()


def test_experts_drop_no_token_and_are_weighted():
    torch.manual_seed(0)
    experts = Experts(MixtureOfExperts(8, 4, 2), 16).eval()
    x = torch.randn(3, 5, 16)
    with torch.no_grad():
        # All tokens want the same experts.
        experts.router.weight.zero_()
        experts.router.weight[1] = x.mean((0, 1)) * 50
        probabilities = experts.router(x).softmax(-1)
        expected = torch.zeros_like(x)
        for place in range(3 * 5):
            row, column = divmod(place, 5)
            best = probabilities[row, column].topk(2)
            for weight, expert in zip(best.values / best.values.sum(), best.indices, strict=True):
                expected[row, column] += weight * experts.experts[expert](x[row, column])

        torch.testing.assert_close(experts(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("active", [1, 2])
def test_routers_learn_from_the_outputs(active):
    torch.manual_seed(0)
    experts = Experts(MixtureOfExperts(8, 4, active), 16)
    experts(torch.randn(6, 16)).square().sum().backward()
    assert experts.router.weight.grad.abs().max() > 1e-5


def test_lower_precision_changes_no_choice_of_experts():
    torch.manual_seed(0)
    experts = Experts(MixtureOfExperts(8, 2, 1), 16).eval()
    with torch.no_grad():
        # The logits of all tokens differ by less than bfloat16 resolves.
        experts.router.weight[1] = experts.router.weight[0] * (1 + 2**-12)

    x = torch.randn(40, 16)
    with torch.no_grad():
        expected = experts(x)
        with torch.autocast("cpu", torch.bfloat16):
            actual = experts(x)

    torch.testing.assert_close(actual, expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("size", [2, 4])
def test_small_heads_of_the_delta_rule_keep_their_precision(size):
    torch.manual_seed(0)
    mixer = GatedDeltaMixer(GatedDelta(4, size), 16).eval()
    x = torch.randn(4, 64, 16)
    with torch.no_grad():
        expected = mixer(x)
        with torch.autocast("cpu", torch.bfloat16):
            actual = mixer(x).float()

    # With queries and keys of bfloat16 the largest error was 10 to 57 % of the deviation.
    assert (actual - expected).abs().max() < 0.06 * expected.std()


def test_the_balance_of_experts_is_a_term_of_the_loss():
    torch.manual_seed(0)
    module = builders.build(network_of(Block(None, MixtureOfExperts(8, 4, 1))), FORM, 0)
    (experts,) = [part for part in module.modules() if isinstance(part, Experts)]
    assert builders.build(network_of(Block(None, Gelu(8))), FORM).penalty() is None
    with torch.no_grad():
        experts.router.weight.zero_()

    module(tokens(12))
    # Equal probabilities: the balance is 1 however the ties fall.
    assert module.penalty().item() == pytest.approx(0.01)
    module(tokens(12))
    module.penalty().backward()
    assert experts.router.weight.grad.isfinite().all()


def test_a_task_with_other_tokens_is_refused():
    with pytest.raises(InvalidArchitectureError, match=r"network 11: .*vocabulary=256"):
        builders.build(sampled(1)[0], NetworkForm((8,), 256, "language"))

    with pytest.raises(InvalidArchitectureError, match="for language tasks, got a classification"):
        builders.build(sampled(1)[0], NetworkForm((3, 8, 8), 11, "classification"))
