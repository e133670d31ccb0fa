"""The default recipe: supervised training of one network, by its protocol.

    train                                    the recipe, its epochs, a call that runs it
    steps, step_graphs, batches              a step and its update, recorded steps, their data
    evaluate                                 metrics, the best epoch
    hyperparameters, precision, memory       overrides, floating-point formats, exhausted memory

Imports `recipes`, `nn`, `tasks`, `datasets` and `protocols`; knows nothing of processes, daemons or
the store. It uses the public context of recipes alone, as the recipes of other packages do.
"""
