"""A recipe as a program: softmax regression in numpy.

It knows nothing of the archive, and could be in any language.
"""

import json
import os
import signal
import sys

import numpy as np


def say(**message):
    """Write one line for the trainer."""
    print(json.dumps(message), flush=True)


def classes(weights, inputs):
    """Return the predicted classes."""
    return (inputs @ weights).argmax(1)


def main():
    """Train from the last checkpoint to the requested epoch."""
    trial = json.loads(sys.stdin.readline())
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))
    data = np.load(trial["data"])
    inputs, valid = (
        np.column_stack([part.reshape(len(part), -1), np.ones(len(part))])
        for part in (data["train_inputs"], data["valid_inputs"])
    )
    wanted = np.eye(trial["outputs"])[data["train_targets"]]
    file = os.path.join(trial["checkpoint"], "weights.npy")
    weights = (
        np.load(file) if os.path.exists(file) else np.zeros((inputs.shape[1], trial["outputs"]))
    )
    print("features:", inputs.shape[1], file=sys.stderr)  # The log of the trial.
    for epoch in range(trial["reports"] + 1, trial["epochs"] + 1):
        order = np.random.default_rng([trial["seed"], epoch]).permutation(len(inputs))
        for batch in np.array_split(order, len(order) // 16):
            scores = inputs[batch] @ weights
            likelihoods = np.exp(scores - scores.max(1, keepdims=True))
            error = likelihoods / likelihoods.sum(1, keepdims=True) - wanted[batch]
            weights -= 0.1 * inputs[batch].T @ error / len(batch)

        accuracy = float((classes(weights, valid) == data["valid_targets"]).mean())
        say(step=epoch, metrics={"valid_accuracy": accuracy})
        os.mkdir(f"epoch-{epoch}")
        np.save(f"epoch-{epoch}/weights.npy", weights)
        say(checkpoint=f"epoch-{epoch}")
        if told and epoch < trial["epochs"]:
            return

    np.savez("model.npz", weights=weights)
    say(result={"metrics": {"valid_accuracy": accuracy}, "weights": "model.npz"})


main()
