"""Files of trainers: atomic writes, resumable checkpoints, trained weights, garbage collection."""
