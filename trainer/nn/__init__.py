"""Torch modules of architectures."""
