"""Nearest architectures of an archive, by any kernel, across all studies."""
