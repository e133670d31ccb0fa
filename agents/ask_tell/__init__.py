"""Ask and tell: studies for a training loop of the caller."""
