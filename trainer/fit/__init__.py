"""The default recipe: supervised training of one network, by its protocol.

    train                                    the recipe, and a call that runs it in this process
    loop, steps, batches, optimiser          epochs, steps, the data of a step, its update
    evaluate                                 metrics, the best epoch
    hyperparameters, precision, memory       overrides, floating-point formats, exhausted memory

Imports `recipes`, `nn`, `tasks`, `datasets` and `protocols`; knows nothing of processes, daemons or
the store. It uses the public context of recipes alone, as the recipes of other packages do.
"""
