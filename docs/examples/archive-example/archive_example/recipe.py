"""A recipe: L-BFGS on all inputs at once, for small data."""

import torch
from torch.nn import functional as F

from archive.trainer.recipes.base import FitResult
from archive.trainer.recipes.context import TrialContext


def fit(trial: TrialContext) -> FitResult:
    """Train a classifier with an epoch of five iterations, each on all inputs."""
    data = trial.data()
    model = trial.module().to(trial.device)
    train, valid = (
        [torch.from_numpy(array).to(trial.device) for array in (part.inputs, part.targets)]
        for part in (data.train, data.valid)
    )
    optimiser = torch.optim.LBFGS(model.parameters(), max_iter=5, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        value = F.cross_entropy(model(train[0]), train[1])
        value.backward()
        return value

    if (saved := trial.checkpoint.load()) is not None:
        model.load_state_dict(saved.tensors)

    for epoch in range(trial.reports + 1, trial.epochs + 1):
        # Without the history of the epoch before, so that the weights are the whole state.
        optimiser.state.clear()
        train_loss = optimiser.step(loss).item()
        with torch.inference_mode():
            accuracy = (model(valid[0]).argmax(1) == valid[1]).float().mean().item()

        stop = trial.report(epoch, {"train_loss": train_loss, "valid_accuracy": accuracy})
        if stop or trial.checkpoint.due():
            trial.checkpoint.save(tensors=model.state_dict())

        if stop:
            break

    return FitResult(weights=model.state_dict())
