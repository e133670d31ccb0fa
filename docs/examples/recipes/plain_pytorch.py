"""A recipe in plain PyTorch: a loop over epochs, with a checkpoint whenever one is due."""

import torch
from torch.nn import functional as F

import archive
from archive.trainer.recipes.base import FitResult
from archive.trainer.recipes.context import TrialContext

BATCH = 64


@archive.recipe(tasks="classification")
def fit(trial: TrialContext) -> FitResult:
    """Train a classifier by SGD with a cosine schedule, and keep its last weights."""
    parts = {
        name: _tensors(getattr(trial.data(), name), trial.device)
        for name in ("train", "valid", "test")
    }
    model = trial.module().to(trial.device)
    rate = trial.hyperparameters.get("learning_rate", 0.05)
    optimiser = torch.optim.SGD(model.parameters(), rate, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, trial.protocol.epochs)
    everything = {"model": model, "optimiser": optimiser, "schedule": schedule}
    file = trial.scratch / "state" / "state.pt"
    file.parent.mkdir()
    if (saved := trial.checkpoint.load()) is not None:
        saved.extract(file.parent)
        for name, state in torch.load(file, weights_only=True).items():
            everything[name].load_state_dict(state)

    for epoch in range(trial.reports + 1, trial.epochs + 1):
        loss = _epoch(model, optimiser, *parts["train"], seed=trial.seed + 1000 * epoch)
        schedule.step()
        valid_loss, valid_accuracy = _measured(model, *parts["valid"])
        stop = trial.report(
            epoch, {"train_loss": loss, "valid_loss": valid_loss, "valid_accuracy": valid_accuracy}
        )
        if stop or trial.checkpoint.due():
            torch.save({name: one.state_dict() for name, one in everything.items()}, file)
            trial.checkpoint.save(folder=file.parent)

        if stop:
            break

    return FitResult({"test_accuracy": _measured(model, *parts["test"])[1]}, model.state_dict())


def _tensors(part, device):
    return torch.from_numpy(part.inputs).to(device), torch.from_numpy(part.targets).to(device)


def _epoch(model, optimiser, inputs, targets, seed):
    # The order depends on the epoch alone, so that a resumed trial goes through the same batches.
    order = torch.randperm(len(targets), generator=torch.Generator().manual_seed(seed))
    total = 0.0
    model.train()
    for batch in order.split(BATCH):
        optimiser.zero_grad()
        loss = F.cross_entropy(model(inputs[batch]), targets[batch])
        loss.backward()
        optimiser.step()
        total += loss.item() * len(batch)

    return total / len(targets)


@torch.inference_mode()
def _measured(model, inputs, targets):
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(1) == targets).float().mean().item()
    return F.cross_entropy(outputs, targets).item(), accuracy
