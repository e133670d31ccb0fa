"""A recipe without PyTorch: the multi-layer perceptron of scikit-learn.

It has the layers of the network.
"""

import pickle

from sklearn.neural_network import MLPClassifier

import archive
from archive.trainer.recipes.base import FitResult
from archive.trainer.recipes.context import TrialContext


@archive.recipe(tasks="classification")
def fit(trial: TrialContext) -> FitResult:
    """Train a classifier whose hidden layers have the widths of the architecture's layers."""
    widths = [layer.units for layer in trial.architecture.layers if layer.units]
    data = trial.data()
    parts = {
        name: (part.inputs.reshape(len(part), -1), part.targets)
        for name, part in (("train", data.train), ("valid", data.valid), ("test", data.test))
    }
    saved = trial.checkpoint.load()
    # Unpickling runs code: a checkpoint is a file of this trainer's user alone.
    model = (
        MLPClassifier(widths, random_state=trial.seed % 2**32, batch_size=64)
        if saved is None
        else pickle.loads(saved.files["model.pickle"])
    )
    folder = trial.scratch / "state"
    folder.mkdir()
    for epoch in range(trial.reports + 1, trial.epochs + 1):
        model.partial_fit(*parts["train"], classes=range(trial.task.outputs))
        stop = trial.report(
            epoch, {"train_loss": model.loss_, "valid_accuracy": model.score(*parts["valid"])}
        )
        if stop or trial.checkpoint.due():
            folder.joinpath("model.pickle").write_bytes(pickle.dumps(model))
            trial.checkpoint.save(folder=folder)

        if stop:
            break

    weights = {
        f"{name}.{at}": array
        for name in ("coefs_", "intercepts_")
        for at, array in enumerate(getattr(model, name))
    }
    return FitResult({"test_accuracy": model.score(*parts["test"])}, weights)
