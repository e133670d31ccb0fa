"""A recipe with the Trainer of Hugging Face, on the network of a trial; nothing is downloaded."""

import shutil

import numpy as np
import torch
from torch.nn import functional as F
from transformers import Trainer, TrainerCallback, TrainingArguments

import archive
from archive.trainer.recipes.base import FitResult
from archive.trainer.recipes.context import TrialContext


class Classifier(torch.nn.Module):
    """The network of a trial as the Trainer calls it: inputs and labels in, loss and logits out."""

    def __init__(self, module):
        """Keep the module."""
        super().__init__()
        self.module = module

    def forward(self, inputs, labels=None):
        """Return the loss, if there are labels, and the logits."""
        logits = self.module(inputs)
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


class Reports(TrainerCallback):
    """Reports each evaluation, and stops the training when the trial must stop."""

    def __init__(self, trial):
        """Keep the trial."""
        self.trial = trial

    def on_evaluate(self, args, state, control, metrics, **_):
        """The Trainer evaluates after each epoch."""
        numbers = {
            "valid_loss": metrics["eval_loss"],
            "valid_accuracy": metrics["eval_accuracy"],
            "train_loss": state.log_history[-2]["loss"],
        }
        stop = self.trial.report(round(state.epoch), numbers)
        control.should_save = stop is not None or self.trial.checkpoint.due()
        control.should_training_stop = stop is not None

    def on_save(self, args, state, control, **_):
        """The Trainer has written a folder."""
        folder = self.trial.scratch / "trainer" / f"checkpoint-{state.global_step}"
        self.trial.checkpoint.save(folder=folder)
        shutil.rmtree(folder)


@archive.recipe(tasks="classification")
def fit(trial: TrialContext) -> FitResult:
    """Train a classifier with the Trainer."""
    data = trial.data()
    saved = trial.checkpoint.load()
    model = Classifier(trial.module())
    trainer = Trainer(
        model=model,
        args=_arguments(trial),
        train_dataset=_rows(data.train),
        eval_dataset=_rows(data.valid),
        compute_metrics=lambda found: {
            "accuracy": float((found.predictions.argmax(1) == found.label_ids).mean())
        },
        callbacks=[Reports(trial)],
    )
    resumed = None if saved is None else str(saved.extract(trial.scratch / "resumed"))
    trainer.train(resume_from_checkpoint=resumed)
    return FitResult(weights=model.module.state_dict())


def _arguments(trial):
    device = torch.device(trial.device)
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)

    arguments = TrainingArguments(
        output_dir=str(trial.scratch / "trainer"),
        num_train_epochs=trial.protocol.epochs,
        learning_rate=trial.hyperparameters.get("learning_rate", 3e-3),
        per_device_train_batch_size=64,
        per_device_eval_batch_size=1024,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=device.type == "cpu",
        seed=trial.seed,
    )
    # The Trainer would use all GPUs of the machine.
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1

    return arguments


def _rows(part):
    return [
        {"inputs": inputs, "labels": label}
        for inputs, label in zip(
            torch.from_numpy(part.inputs), part.targets.astype(np.int64), strict=True
        )
    ]
