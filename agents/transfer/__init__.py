"""Transfer from other tasks: eligible source studies, models of source tasks, and reports of their
contribution.
"""
