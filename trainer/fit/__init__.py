"""One training: data batches, steps, evaluation, early stopping, precision."""
