"""Training protocols: every choice that a result depends on beside task, architecture and seed.

    base        the protocol itself, with the meaning of each choice, and its `+morph` variant
    networks    the form of a network, for its builder

Imports nothing else of the trainer, and no torch.
"""
