"""Comparison of a model with the network that is built from its architecture, in both modes.

Both compute the same batch with the same weights. Each operation with random numbers draws from the
same seed, so that the order of the draws does not matter: dropout, noise and stochastic depth are
compared number by number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from archive.architecture.aten.wiring import Input
from archive.trainer.intake import tracing
from archive.trainer.intake.exporting import modes_kept, name_list

MOST_MULTIPLICATIONS = 2 * 10**10
"""Multiply-adds of one input beyond which a network is not compared: it would take longer than the
import."""

MOST_DIFFERENCE = 0.05
"""Share of the largest output by which a network may differ in evaluation mode, where rounding
errors grow."""

_BATCHES = (3, 1)

_MULTIPLICATIONS_OF_A_BATCH = 6 * 10**9
"""Multiply-adds of a batch beyond which fewer inputs are compared: one, of a large network."""

_SAME = 0.01
"""Share of the largest number by which two tensors may differ; rounding gives less, another
operation more."""


class ModePasses(NamedTuple):
    """Results of one module in both modes.

    Attributes:
        outputs: Its outputs in evaluation mode.
        training: Its outputs in training mode; None where it cannot run in it.
        gradients: Gradient of each trained tensor then; None where it gets none.
        buffers: Values of each buffer after that.
    """

    outputs: list[Tensor]
    training: list[Tensor] | None
    gradients: dict[str, Tensor | None]
    buffers: dict[str, Tensor]


def differences(
    model: nn.Module,
    network: nn.Module,
    names: Mapping[str, str],
    inputs: Sequence[Input],
    *,
    flops: int = 0,
) -> tuple[float, list[str]]:
    """Compare a model with the network of its architecture.

    Args:
        model: The model; unchanged.
        network: The network, with the model's weights.
        names: Name of each tensor in the network to its name in the model.
        inputs: The inputs.
        flops: Multiply-adds of one input, which limit the size of the batch; 0 if unknown.

    Returns:
        The largest difference of outputs in evaluation, as a share of the largest output, and the
        differences in training, a line each. A model that raises an error is not compared.
    """
    network = network.to(tracing.device_of(model))
    outcome: tuple[float, list[str]] = (0.0, [])
    for batch in _batches(flops):
        for random in (True, False):
            examples = _examples(network, inputs, batch, random)
            try:
                expected = _passes(model, examples)
            except Exception:
                continue

            outcome = _compare(expected, _passes(network, examples), names)
            # One input is too few for some normalisations by the batch.
            if expected.training is not None or batch > 1:
                return outcome

    return outcome


def _batches(flops: int) -> list[int]:
    """Return the sizes of a batch to try, in order."""
    affordable = _MULTIPLICATIONS_OF_A_BATCH // max(flops, 1)
    first = max(1, min(_BATCHES[0], affordable))
    return list(dict.fromkeys((first, *_BATCHES)))


def _compare(
    expected: ModePasses, computed: ModePasses, names: Mapping[str, str]
) -> tuple[float, list[str]]:
    share = _largest_share(expected.outputs, computed.outputs)
    if expected.training is None:
        return share, []

    if computed.training is None:
        return share, ["the network raises an error in training, and the model does not"]

    lines = []
    if _largest_share(expected.training, computed.training) > _SAME:
        lines.append("in training the network computes other outputs than the model")

    # By name in the model: a tensor may have several names in the network.
    compared: dict[str, str] = {}
    for name, model_name in names.items():
        if name in computed.gradients and model_name in expected.gradients:
            compared[model_name] = name

    scale = max(map(_size, expected.gradients.values()), default=0.0)
    other: list[str] = []
    for model_name, name in compared.items():
        if _differs(expected.gradients[model_name], computed.gradients[name], scale):
            other.append(model_name)

    if other:
        lines.append(
            f"in training the gradient of {name_list(sorted(other), 'parameter')} is "
            "not that of the model"
        )

    compared = {}
    for name, model_name in names.items():
        if name in computed.buffers and model_name in expected.buffers:
            compared[model_name] = name

    other = []
    for model_name, name in compared.items():
        if _share(expected.buffers[model_name], computed.buffers[name]) > _SAME:
            other.append(model_name)

    if other:
        lines.append(
            f"in training {name_list(sorted(other), 'buffer')} of the model gets other values"
        )

    return share, lines


def _passes(module: nn.Module, examples: Sequence[Tensor]) -> ModePasses:
    """Run a module in both modes; its buffers, modes and gradients stay as they are."""
    with _state_kept(module), torch.random.fork_rng(devices=[]), reseeded():
        module.eval()
        with torch.no_grad():
            outputs = _tensors(module(*map(torch.clone, examples)))

        module.train()
        parameters: dict[str, nn.Parameter] = {}
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                parameters[name] = parameter

        try:
            with torch.enable_grad():
                training = _tensors(module(*map(torch.clone, examples)))[: len(outputs)]
                gradients = _gradients(training, parameters)
        except Exception:
            return ModePasses(outputs, None, {}, {})

        # Tied tensors have one name in the list of parameters, and several in the state.
        first = {id(parameter): name for name, parameter in parameters.items()}
        for name, parameter in module.named_parameters(remove_duplicate=False):
            if id(parameter) in first:
                gradients[name] = gradients[first[id(parameter)]]

        training = list(map(torch.detach, training))
        return ModePasses(outputs, training, gradients, _copy_buffers(module))


def _gradients(
    outputs: Sequence[Tensor], parameters: Mapping[str, nn.Parameter]
) -> dict[str, Tensor | None]:
    total = torch.zeros(())
    for output in outputs:
        if output.requires_grad:
            real = torch.view_as_real(output) if output.is_complex() else output
            weights = torch.linspace(-1.0, 1.0, real.numel(), dtype=real.dtype, device=real.device)
            total = total.to(real.device) + (real.reshape(-1) * weights).sum()

    if not total.requires_grad or not parameters:
        return dict.fromkeys(parameters)

    gradients = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
    return dict(zip(parameters, gradients, strict=True))


@contextmanager
def _state_kept(module: nn.Module) -> Iterator[None]:
    buffers = _copy_buffers(module)
    with modes_kept(module):
        try:
            yield
        finally:
            with torch.no_grad():
                for name, buffer in module.named_buffers():
                    if name in buffers and buffer.shape == buffers[name].shape:
                        buffer.copy_(buffers[name])


def _copy_buffers(module: nn.Module) -> dict[str, Tensor]:
    return {name: buffer.clone() for name, buffer in module.named_buffers()}


def reseeded() -> TorchDispatchMode:
    """Return a context in which each operation with random numbers draws from the same seed."""
    return _Reseeded()  # type: ignore[no-untyped-call]


class _Reseeded(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sets the seed before each operation with random numbers."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation."""
        if torch.Tag.nondeterministic_seeded in func.tags:
            torch.manual_seed(0)

        return func(*args, **(kwargs or {}))


def _examples(module: nn.Module, inputs: Sequence[Input], batch: int, random: bool) -> list[Tensor]:
    device = tracing.device_of(module)
    rng = torch.Generator().manual_seed(0)
    examples = []
    for spec in inputs:
        dtype = getattr(torch, spec.dtype)
        if random and dtype.is_floating_point:
            values = torch.randn((batch, *spec.shape), generator=rng).to(dtype)
        else:
            # Zero is an index of every table.
            values = torch.zeros((batch, *spec.shape), dtype=dtype)

        examples.append(values.to(device))

    return examples


def _tensors(outputs: Any) -> list[Tensor]:
    leaves = [leaf for leaf in _pytree.tree_leaves(outputs) if isinstance(leaf, Tensor)]
    return leaves if torch.is_grad_enabled() else list(map(torch.detach, leaves))


def _largest_share(expected: Sequence[Tensor], computed: Sequence[Tensor]) -> float:
    return max(map(_share, expected, computed), default=0.0)


def _share(expected: Tensor, computed: Tensor) -> float:
    """Return the largest difference of two tensors as a share of the largest number."""
    if expected.shape != computed.shape:
        return math.inf

    if not expected.numel():
        return 0.0

    first = _widen(expected)
    second = _widen(computed)
    difference = torch.where(
        (first == second) | (first.isnan() & second.isnan()), 0.0, (first - second).abs()
    )
    finite = first.abs()[first.isfinite()]
    scale = max(float(finite.max()) if finite.numel() else 0.0, 1e-6)
    largest = float(difference.max())
    return math.inf if math.isnan(largest) else largest / scale


def _widen(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _size(gradient: Tensor | None) -> float:
    """Return the largest absolute number of a gradient; 0 without one."""
    if gradient is None or not gradient.numel():
        return 0.0

    return float(gradient.abs().max())


def _differs(expected: Tensor | None, computed: Tensor | None, scale: float) -> bool:
    """Return whether two gradients differ; gradients far below `scale` count as rounding errors."""
    if expected is None or computed is None:
        return (expected is None) != (computed is None)

    if not (_size(expected) > 1e-4 * scale or _size(computed) > 1e-4 * scale):
        return False

    return _share(expected, computed) > _SAME
