"""Transfer from other tasks: source tasks, their models, their weights, and reports of what they gave."""
