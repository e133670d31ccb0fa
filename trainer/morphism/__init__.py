"""Network morphism of trained weights: a grown network starts with its parent's function.

    match, demand, channels      which layers and channels of the child continue the parent's
    feasibility                  whether the function can be kept
    tensors, transfer            the child's weights
    checking                     whether an ancestor's weights can be used: those of its network, and finite
    inherited_weights            an ancestor's weights, found in the archive and adapted to a network

Imports `nn`, `tasks`, `protocols` and `storage`. `match`, `demand`, `channels` and `feasibility`
need no torch.
"""
