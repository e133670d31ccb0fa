"""Network morphism of trained weights: a grown network starts with its parent's function.

    match, channels      layers and channels of the child that continue the parent's
    feasibility          whether the function can be kept
    transfer             the child's weights
    inherited_weights    an ancestor's weights, found, checked and adapted to a network

Imports `nn`, `tasks`, `protocols` and `storage`. Only `transfer` needs torch at its import.
"""
