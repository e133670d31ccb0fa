"""A recipe with DistributedDataParallel: a process on each device; the first reports and saves."""

import torch
from torch import distributed
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from archive.trainer.recipes.base import FitResult
from archive.trainer.recipes.context import TrialContext

BATCH = 64  # Of all processes together.


def fit(trial: TrialContext) -> FitResult:
    """Train a classifier on all devices of the trial, with the batches of a single process."""
    device = torch.device(trial.device)
    network = model = trial.module().to(device)
    if trial.world_size > 1:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
        model = DistributedDataParallel(network, [device] if device.type == "cuda" else None)

    optimiser = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True)
    parts = {
        name: _tensors(getattr(trial.data(), name), device) for name in ("train", "valid", "test")
    }
    everything = {"network": network, "optimiser": optimiser}
    file = trial.scratch / "state" / "state.pt"
    file.parent.mkdir()
    # All processes load the checkpoint that the first one has saved.
    if (saved := trial.checkpoint.load()) is not None:
        saved.extract(file.parent)
        for name, state in torch.load(file, weights_only=True).items():
            everything[name].load_state_dict(state)

    for epoch in range(trial.reports + 1, trial.epochs + 1):
        _epoch(model, optimiser, *parts["train"], trial, seed=trial.seed + 1000 * epoch)
        # Reports of the other processes count their epochs, and are ignored.
        metrics = {"valid_accuracy": _accuracy(network, *parts["valid"])} if trial.rank == 0 else {}
        stop = trial.report(epoch, metrics)
        if stop or trial.checkpoint.due():
            torch.save({name: one.state_dict() for name, one in everything.items()}, file)
            trial.checkpoint.save(folder=file.parent)

        if stop:
            break

    if trial.world_size > 1:
        distributed.destroy_process_group()

    return FitResult({"test_accuracy": _accuracy(network, *parts["test"])}, network.state_dict())


def _tensors(part, device):
    return torch.from_numpy(part.inputs).to(device), torch.from_numpy(part.targets).to(device)


def _epoch(model, optimiser, inputs, targets, trial, seed):
    model.train()
    order = torch.randperm(len(targets), generator=torch.Generator().manual_seed(seed))
    for batch in order.split(BATCH):
        mine = batch[trial.rank :: trial.world_size]
        total = F.cross_entropy(model(inputs[mine]), targets[mine], reduction="sum")
        optimiser.zero_grad()
        # Gradients are averaged over the processes: this is the mean over the whole batch.
        (total * trial.world_size / len(batch)).backward()
        optimiser.step()


@torch.inference_mode()
def _accuracy(model, inputs, targets):
    model.eval()
    return (model(inputs).argmax(1) == targets).float().mean().item()
