"""The training of `ensemble_training` as batched torch: all members advance together, on a GPU.

Same plan, same steps, same notation; only the order of summation differs, so that weights agree to rounding at first
and part ways as any two trainings in single precision do. On a processor the compiled loops are faster.
"""

from __future__ import annotations

import torch

from archive.agents.surrogates.ensemble.training import Plan, Shape, Singles


def train(shape: Shape, plan: Plan, inputs: Singles, targets: Singles, batch: int, rate: float, device: str) -> Singles:
    """Train all members and return their weights: (M, P) float32; arguments as in `ensemble_training.train`.

    Args:
        shape: Of each member.
        plan: Initial weights and orders; left as they are.
        inputs: (n, F) float32.
        targets: (n,) float32.
        batch: Observations a step.
        rate: Adam's learning rate.
        device: Name of a torch device.
    """
    _, epochs, n = plan.orders.shape
    thetas = torch.tensor(plan.thetas, device=device)
    thetas.grad = torch.zeros_like(thetas)
    layers, slopes = _layers(shape, thetas), _layers(shape, thetas.grad)
    x, y = torch.tensor(inputs, device=device), torch.tensor(targets, device=device)
    # One copy of all orders: a copy for each batch would make the device wait for this process.
    orders = torch.tensor(plan.orders, device=device, dtype=torch.int64)
    adam = torch.optim.Adam([thetas], lr=rate, betas=(0.9, 0.99), eps=1e-7, fused=True)
    with torch.no_grad():
        for epoch in range(epochs):
            for start in range(0, n, batch):
                chosen = orders[:, epoch, start : start + batch]
                _differentiate(layers, slopes, x[chosen], y[chosen])
                adam.step()
    return thetas.cpu().numpy()


Layers = list[tuple[torch.Tensor, torch.Tensor]]


def _layers(shape: Shape, thetas: torch.Tensor) -> Layers:
    """Return weights (M, in, out) and biases (M, 1, out) of each layer as views of (M, P)."""
    members, W = len(thetas), shape.width
    pieces = torch.split(thetas, [int(torch.Size(part).numel()) for part in shape.parts], dim=1)
    first, hidden, last, biases, bias = (
        piece.view(members, *part) for piece, part in zip(pieces, shape.parts, strict=True)
    )
    weights = [first, *hidden.unbind(1), last.view(members, W, 1)]
    return list(zip(weights, [*biases.view(members, -1, 1, W).unbind(1), bias.view(members, 1, 1)], strict=True))


def _differentiate(layers: Layers, slopes: Layers, x: torch.Tensor, y: torch.Tensor) -> None:
    """Write the gradient of each member's mean absolute error into `slopes`; x is (M, b, F), y (M, b)."""
    outputs = [x]
    for weights, biases in layers[:-1]:
        outputs.append(torch.baddbmm(biases, outputs[-1], weights).relu_())
    weights, biases = layers[-1]
    d = torch.sign(torch.baddbmm(biases, outputs[-1], weights) - y[..., None]) / y.shape[1]
    for at in range(len(layers) - 1, -1, -1):
        slopes[at][0].copy_(torch.bmm(outputs[at].transpose(1, 2), d))
        slopes[at][1].copy_(d.sum(1, keepdim=True))
        if at:
            d = torch.bmm(d, layers[at][0].transpose(1, 2)) * (outputs[at] > 0)
