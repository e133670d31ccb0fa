"""Transfer from other tasks: eligible source studies, their models, and their contribution."""
