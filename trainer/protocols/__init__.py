"""Training protocols: every choice that a result depends on beside task, architecture and seed.

    base     the protocol itself, with the meaning of each choice
    morph    `NAME+morph`: the same rules for networks that inherit weights

Imports nothing else of the trainer, and no torch.
"""
