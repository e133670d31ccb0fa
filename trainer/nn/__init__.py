"""Torch modules of architectures, from a builder for each space.

    base, builders    the contract of a builder, and builders by space; without torch
    graphs            builders of mlp and cnn: `layers` of operations, `network` of the whole graph
    cells             builders of spaces of cells: `nasbench101`, `nasbench201`,
                      `genotype_networks`
    costs             parameters and floating point operations of any module
    dropout           dropout of chosen layers' inputs
    units             units of a layer's weights, and bounds of their norms

Imports of the trainer nothing but `protocols.networks`.
"""
