"""Data sets made up for tests."""

from __future__ import annotations

import numpy as np


def images_npz(train: int, test: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random images and labels under the names of MNIST's file of Keras."""
    rng = np.random.default_rng(seed)
    return {
        "x_train": rng.integers(0, 256, (train, 28, 28), dtype=np.uint8),
        "y_train": (np.arange(train) % 10).astype(np.uint8),
        "x_test": rng.integers(0, 256, (test, 28, 28), dtype=np.uint8),
        "y_test": (np.arange(test) % 10).astype(np.uint8),
    }
