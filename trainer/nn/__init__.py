"""Torch modules of architectures: `layers` for each operation, `network` for the whole graph.

Imports nothing else of the trainer.
"""
