"""A recipe with PyTorch Lightning: the callback reports, saves and stops."""

import logging

import pytorch_lightning as lightning
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Sampler, TensorDataset

import archive
from archive.trainer.recipes.base import FitResult
from archive.trainer.recipes.context import TrialContext

logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)


class Classifier(lightning.LightningModule):
    """The network of a trial, with its loss and its optimiser."""

    def __init__(self, module, rate, epochs):
        """Keep the module."""
        super().__init__()
        self.module = module
        self.rate = rate
        self.epochs = epochs

    def training_step(self, batch, _):
        """Return the loss."""
        inputs, targets = batch
        loss = F.cross_entropy(self.module(inputs), targets)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        """Log loss and accuracy."""
        inputs, targets = batch
        outputs = self.module(inputs)
        self.log("valid_loss", F.cross_entropy(outputs, targets))
        self.log("valid_accuracy", (outputs.argmax(1) == targets).float().mean())

    def configure_optimizers(self):
        """Return AdamW with a cosine schedule."""
        optimiser = torch.optim.AdamW(self.parameters(), self.rate)
        return [optimiser], [torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.epochs)]


class Reports(lightning.Callback):
    """Reports each epoch, and stops the training when the trial must stop."""

    def __init__(self, trial, file):
        """Keep the trial, and the file of its checkpoints."""
        self.trial = trial
        self.file = file

    def on_train_epoch_end(self, trainer, model):
        """Validation is over by then."""
        metrics = {name: value.item() for name, value in trainer.callback_metrics.items()}
        stop = self.trial.report(trainer.current_epoch + 1, metrics)
        if stop or self.trial.checkpoint.due():
            trainer.save_checkpoint(self.file)
            self.trial.checkpoint.save(folder=self.file.parent)

        trainer.should_stop = stop is not None


class EpochOrder(Sampler):
    """An order of the inputs that depends on the epoch alone.

    A resumed trial goes through the same batches.
    """

    def __init__(self, count, seed):
        """Begin before the first epoch."""
        self.count = count
        self.seed = seed
        self.epoch = 0

    def __len__(self):
        return self.count

    def __iter__(self):
        order = torch.Generator().manual_seed(self.seed + 1000 * self.epoch)
        return iter(torch.randperm(self.count, generator=order).tolist())

    def set_epoch(self, epoch):
        """Lightning calls this before each epoch."""
        self.epoch = epoch


@archive.recipe(tasks="classification")
def fit(trial: TrialContext) -> FitResult:
    """Train a classifier with the Lightning trainer."""
    data = trial.data()
    device = torch.device(trial.device)
    train, valid = (
        TensorDataset(torch.from_numpy(part.inputs), torch.from_numpy(part.targets))
        for part in (data.train, data.valid)
    )
    model = Classifier(
        trial.module(), trial.hyperparameters.get("learning_rate", 3e-3), trial.protocol.epochs
    )
    file = trial.scratch / "state" / "last.ckpt"
    file.parent.mkdir()
    saved = trial.checkpoint.load()
    if saved is not None:
        saved.extract(file.parent)

    trainer = lightning.Trainer(
        accelerator="gpu" if device.type == "cuda" else "cpu",
        devices=[device.index or 0] if device.type == "cuda" else 1,
        max_epochs=trial.protocol.epochs,
        callbacks=[Reports(trial, file)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        default_root_dir=trial.scratch,
    )
    trainer.fit(
        model,
        DataLoader(train, batch_size=64, sampler=EpochOrder(len(train), trial.seed)),
        DataLoader(valid, batch_size=len(valid)),
        ckpt_path=None if saved is None else file,
    )
    return FitResult(weights=model.module.state_dict())
