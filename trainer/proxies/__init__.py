"""Zero-cost proxies: scores of an untrained network on one batch, which rank architectures.

`measurement` builds the network, draws the batch and computes all proxies of the `registry`.
`gradients` and `activations` define them, each with its formula and paper. A proxy is a function of
a `probe.NetworkProbe`,
which shares the passes that several proxies need. `archive.trainer.nn.costs` counts parameters and
operations.

Imports tasks and networks; fits nothing.
"""
