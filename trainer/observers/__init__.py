"""Observers of trials: TensorBoard, MLflow, Weights & Biases, and those of other packages.

    base                        the contract, and the records that an observer receives
    registry                    observers by name, with their options: `NAME[:key=value,…]`
    process, redaction          the process that an observer runs in, and what it says
    tensorboard, mlflow, wandb  the built-in ones

Imports `trial`, for its process, and `storage`; never `daemon`, which translates its events to
these records.
"""
