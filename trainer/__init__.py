"""The trainer: claims proposals, trains their networks, and stores the results as evaluations.

    daemon                   claims proposals, starts trials, delivers results
    observers                TensorBoard, MLflow, Weights & Biases: they receive trials' progress
    trial                    one training in a separate process
    recipes                  the interface of a training, and trainings of other packages
    fit, nn                  the default recipe, and the torch modules of networks
    export                   trained networks as modules and files
    morphism                 weights inherited from an ancestor
    tasks, datasets          tasks by name, and their data
    protocols, storage       the rules of a training, and the files that it leaves

A package imports those below it. The trainer imports nothing of the agents: both communicate only
through the database.
"""
