"""Recipes with several ranks; trials import this module in their own processes."""

from __future__ import annotations

import os
import signal
import time

import torch
from torch import distributed
from torch.nn import functional as F

from archive.trainer.recipes.base import FitResult
from archive.trainer.recipes.context import TrialContext

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")


def gradient(trial: TrialContext) -> FitResult:
    """Report how far the ranks' gradient is from one process's on the whole batch.

    The ranks average it themselves, or the class does that the hyperparameter `wrapped` asks for.
    Ranks above 0 report and return nonsense.
    """
    distributed.init_process_group("gloo")
    part = trial.data().train
    inputs, targets = torch.from_numpy(part.inputs[:64]), torch.from_numpy(part.targets[:64])
    alone = trial.module()
    F.mse_loss(alone(inputs).flatten(), targets.flatten()).backward()
    together = trial.module()
    wrapped = trial.hyperparameters.get("wrapped")
    if wrapped:
        # It imports torch's compiler, for seconds.
        together = torch.nn.parallel.DistributedDataParallel(together)

    mine = slice(trial.rank, None, trial.world_size)
    F.mse_loss(together(inputs[mine]).flatten(), targets[mine].flatten()).backward()
    if not wrapped:
        for parameter in together.parameters():
            distributed.all_reduce(parameter.grad)
            parameter.grad /= trial.world_size

    distance = norm = 0.0
    for one, other in zip(alone.parameters(), together.parameters(), strict=True):
        distance = max(distance, (one.grad - other.grad).abs().max().item())
        norm = max(norm, one.grad.abs().max().item())

    print("printed by", trial.rank)
    about = {name: os.environ[name] for name in VARIABLES}
    about |= {"device": trial.device, "scratch": str(trial.scratch), "cwd": os.getcwd()}
    about["threads"] = torch.get_num_threads()
    known: list[object] = [None] * trial.world_size
    distributed.all_gather_object(known, about)
    value = 999.0 if trial.rank else distance
    trial.report(1, {trial.task.objective: value, "norm": norm})
    distributed.destroy_process_group()
    return FitResult({trial.task.objective: value}, environment={"ranks": known})


def breaks(trial: TrialContext) -> FitResult:
    """Break on rank 1, in the way that the hyperparameter `fault` names."""
    distributed.init_process_group("gloo")
    trial.report(1, {trial.task.objective: 0.5})
    if trial.rank == 1:
        print("rank 1 breaks")
        match trial.hyperparameters.get("fault", "hangs"):
            case "raises":
                raise ValueError("no such batch")
            case "raises after it has left":
                distributed.destroy_process_group()
                raise ValueError("no such batch")
            case "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hangs":
                time.sleep(600)

    distributed.barrier()
    return FitResult({trial.task.objective: 0.5})


def resumes(trial: TrialContext) -> FitResult:
    """Sum what the ranks have; the first attempt waits for an interruption after its first epoch."""
    distributed.init_process_group("gloo")
    saved = trial.checkpoint.load()
    state = {"total": 0.0, "by": -1} if saved is None else dict(saved.state)
    states: list[object] = [None] * trial.world_size
    distributed.all_gather_object(states, state)
    total = state["total"]
    for epoch in range(trial.reports + 1, trial.epochs + 1):
        value = torch.tensor(float(epoch * (trial.rank + 1)))
        distributed.all_reduce(value)
        total += value.item()
        stop = trial.report(epoch, {trial.task.objective: total})
        while trial.rank == trial.resumed == 0 and not stop:
            time.sleep(0.01)
            stop = trial.stop

        trial.checkpoint.save({"total": total, "by": trial.rank})
        if stop:
            break

    return FitResult(environment={"states": states})


def sums(trial: TrialContext) -> FitResult:
    """Report the sum of what the ranks have in each epoch, and where they are."""
    distributed.init_process_group("gloo")
    about = {name: os.environ[name] for name in VARIABLES}
    about["login"] = os.environ.get("ARCHIVE_PASSWORD")
    print(f"rank {trial.rank} sums")
    known: list[object] = [None] * trial.world_size
    distributed.all_gather_object(known, about)
    for epoch in range(1, trial.epochs + 1):
        value = torch.tensor(float(epoch * (trial.rank + 1)))
        distributed.all_reduce(value)
        trial.report(epoch, {trial.task.objective: value.item()})

    return FitResult(environment={"ranks": known})


def dies(trial: TrialContext) -> FitResult:
    """Die on rank 1."""
    trial.hyperparameters["fault"] = "dies"
    return breaks(trial)


def by_lightning(trial: TrialContext) -> FitResult:
    """Let PyTorch Lightning find the ranks, and tell what it found."""
    import pytorch_lightning as lightning
    from torch.utils.data import DataLoader, TensorDataset

    class Regression(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.module = trial.module()

        def training_step(self, batch, _):
            inputs, targets = batch
            return F.mse_loss(self.module(inputs).flatten(), targets.flatten())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    part = trial.data().train
    data = TensorDataset(torch.from_numpy(part.inputs[:64]), torch.from_numpy(part.targets[:64]))
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=trial.world_size,
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=trial.scratch,
    )
    model = Regression()
    trainer.fit(model, DataLoader(data, batch_size=16))
    return _found(trial, trainer.global_rank, trainer.world_size, trainer.global_step, model)


def by_accelerate(trial: TrialContext) -> FitResult:
    """Let accelerate find the ranks, and tell what it found."""
    from accelerate import Accelerator
    from torch.utils.data import DataLoader, TensorDataset

    accelerator = Accelerator(cpu=True)
    part = trial.data().train
    data = TensorDataset(torch.from_numpy(part.inputs[:64]), torch.from_numpy(part.targets[:64]))
    network = trial.module()
    model, optimiser, batches = accelerator.prepare(
        network, torch.optim.SGD(network.parameters(), 0.01), DataLoader(data, batch_size=16)
    )
    steps = 0
    for inputs, targets in batches:
        optimiser.zero_grad()
        accelerator.backward(F.mse_loss(model(inputs).flatten(), targets.flatten()))
        optimiser.step()
        steps += 1

    return _found(trial, accelerator.process_index, accelerator.num_processes, steps, network)


def _found(trial: TrialContext, rank: int, ranks: int, steps: int, model) -> FitResult:
    """Report what a framework found, and how far the weights of the ranks are apart."""
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    mean = weights.clone()
    distributed.all_reduce(mean)
    distance = (mean / ranks - weights).abs().max().item()
    trial.report(1, {trial.task.objective: distance, "ranks": ranks, "steps": steps})
    return FitResult(environment={"rank": rank})
