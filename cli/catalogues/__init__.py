"""Commands that list what an installation has: agents, tasks, protocols, recipes, spaces,
observers, kernels.
"""
