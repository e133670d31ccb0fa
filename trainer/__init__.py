"""The trainer: claims proposals, trains their networks, and stores the results as evaluations.

    daemon                   claims proposals, starts trials, delivers results
    observers                TensorBoard, MLflow, Weights & Biases, which receive the progress of trials
    trial                    one training in a process of its own
    recipes                  what a training is told and may report; trainings of other packages
    fit, nn                  the default recipe, and the torch modules of networks
    morphism                 weights inherited from an ancestor
    tasks, datasets          what is learned, and its data
    protocols, storage       the rules of a training, and the files that it leaves

A package imports those below it. The trainer imports nothing of the agents: the two meet in the database.
"""
