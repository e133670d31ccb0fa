"""Ask and tell: a study for a training loop of the caller's own."""
