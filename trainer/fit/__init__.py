"""The default recipe: supervised training of one network, by its protocol.

    train                                    the recipe, and a call that runs it in this process
    loop, steps, batches, optimiser          epochs, steps, the data of a step, its update
    evaluate, early_stopping                 metrics, the best epoch, convergence
    hyperparameters, precision, memory       overrides of the protocol, floating-point formats, exhausted memory

Imports `recipes`, `nn`, `tasks`, `datasets` and `protocols`; knows nothing of processes, daemons or
the store. It uses the public context of recipes alone, as the recipes of other packages do.
"""
