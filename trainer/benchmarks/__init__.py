"""What the trainer costs beside its training, measured beside references of the same run."""
