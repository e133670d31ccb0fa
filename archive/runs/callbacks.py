"""Callbacks of training frameworks that log to a recorded run.

    with archive.record("mine", minimise="val_loss") as run:
        lightning.Trainer(callbacks=[run.lightning()])
        transformers.Trainer(..., callbacks=[run.hugging_face()])

A callback keeps metrics with their steps, and what the framework was given: its hyperparameters and
its seed. Of several processes, the first alone writes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from archive.errors import UsageError
from archive.values import as_float, whole_number

if TYPE_CHECKING:
    from archive.runs.recording import Recording

_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")
"""Packages of Lightning: each has its own classes."""

_PLACES = ("output_dir", "logging_dir", "run_name", "hub_token", "hub_model_id", "report_to")
"""Arguments of Hugging Face's Trainer that say where something is kept, not what is trained."""

_SEED_VARIABLE = "PL_GLOBAL_SEED"
"""Environment variable in which Lightning's `seed_everything` keeps the seed."""


def lightning_callback(run: Recording) -> Any:
    """Return a callback of Lightning for a run.

    It logs the Trainer's metrics after each validation and each epoch, and keeps the module's
    hyperparameters (`save_hyperparameters`). A module with an `example_input_array` has its network
    captured.

    Args:
        run: The run.

    Raises:
        UsageError: Lightning is not installed.
    """
    lightning = _import_lightning()

    class LightningCallback(lightning.Callback):  # type: ignore[misc, name-defined]
        """Metrics and hyperparameters of a Trainer, for a recorded run."""

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            """Keep what is trained."""
            if not trainer.is_global_zero:
                return

            run.add({**pl_module.hparams, "max_epochs": trainer.max_epochs})
            seed = whole_number(os.environ.get(_SEED_VARIABLE, ""))
            if seed is not None:
                run.tell(seed=seed)

            example = pl_module.example_input_array
            if example is not None:
                run.model(pl_module, *(example if isinstance(example, tuple) else (example,)))

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            """Log the metrics of a validation."""
            if not trainer.sanity_checking:
                _log_lightning(run, trainer)

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            """Log the metrics of an epoch."""
            _log_lightning(run, trainer)

    return LightningCallback()


def hugging_face_callback(run: Recording) -> Any:
    """Return a callback of Hugging Face's Trainer for a run.

    It logs what the Trainer logs, by its global step, and keeps the training arguments that differ
    from their defaults.

    Args:
        run: The run.

    Raises:
        UsageError: The package `transformers` is not installed.
    """
    try:
        transformers = import_module("transformers")
    except ImportError as error:
        raise _missing("transformers") from error

    class HuggingFaceCallback(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        """Metrics and arguments of a Trainer, for a recorded run."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            """Keep what the Trainer was given."""
            if state.is_world_process_zero:
                run.add(_changed_arguments(args))
                run.tell(seed=args.seed)

        def on_log(
            self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any
        ) -> None:
            """Log the metrics of a step."""
            if state.is_world_process_zero:
                _log(run, state.global_step, logs or {})

    return HuggingFaceCallback()


def _import_lightning() -> Any:
    # A program that has loaded one of them has its Trainer from there.
    for package in sorted(_LIGHTNING, key=lambda name: name not in sys.modules):
        try:
            return import_module(package)
        except ImportError:
            continue

    raise _missing("pytorch-lightning")


def _missing(package: str) -> UsageError:
    return UsageError(f"the callback needs {package}: pip install 'nas-archive[frameworks]'")


def _log_lightning(run: Recording, trainer: Any) -> None:
    if trainer.is_global_zero:
        _log(run, trainer.global_step, trainer.callback_metrics)


def _log(run: Recording, step: int, metrics: Mapping[str, Any]) -> None:
    """Log the numbers among some metrics; a training never ends for its log."""
    numbers = {}
    for name, value in metrics.items():
        number = as_float(value)
        if number is not None:
            numbers[str(name)] = number

    if numbers:
        run.log(step, numbers)


def _changed_arguments(arguments: Any) -> dict[str, Any]:
    """Return the arguments of a Trainer that differ from their defaults."""
    changed = {}
    for field in fields(arguments):
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()

        value = getattr(arguments, field.name, default)
        if field.name not in (*_PLACES, "seed") and value != default:
            changed[field.name] = value

    return changed
