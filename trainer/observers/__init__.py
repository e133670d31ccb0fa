"""Observers of trials: TensorBoard, MLflow, Weights & Biases, and other packages' observers.

    base                        the contract, and the records that an observer receives
    registry                    observers by name, with their options: `NAME[:key=value,…]`
    process                     the process that an observer runs in, and its replies
    tensorboard, mlflow, wandb  the built-in ones

Imports `trial`, for its process, and `storage`; never `daemon`, which translates its events to
these records.
"""
