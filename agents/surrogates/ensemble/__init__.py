"""Ensembles of feed-forward networks on features of architectures, the surrogate of BANANAS."""
