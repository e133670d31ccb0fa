"""A recipe that reads the learning rate, and trains the network of the configuration."""

import torch
from torch.nn import functional as F


def fit(trial):
    """Train with SGD, a batch of all images an epoch."""
    model = trial.module()
    optimiser = torch.optim.SGD(model.parameters(), trial.parameters["lr"], momentum=0.9)
    parts = trial.data()
    for epoch in range(1, trial.epochs + 1):
        model.train()
        optimiser.zero_grad()
        F.cross_entropy(model(_images(parts.train)), _labels(parts.train)).backward()
        optimiser.step()
        if trial.report(epoch, {"valid_accuracy": _accuracy(model, parts.valid)}):
            break

    return {"test_accuracy": _accuracy(model, parts.test)}


def _images(part):
    return torch.from_numpy(part.inputs)


def _labels(part):
    return torch.from_numpy(part.targets)


@torch.inference_mode()
def _accuracy(model, part):
    model.eval()
    return (model(_images(part)).argmax(1) == _labels(part)).float().mean().item()
