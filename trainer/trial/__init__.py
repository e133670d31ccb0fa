"""A trial: one training in a process of its own, its messages and its log."""
