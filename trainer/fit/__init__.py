"""Training of one network: what runs inside the process of a trial.

    train                                    the call: network, task, protocol, seed, device in; outcome out
    loop, steps, batches, optimiser          epochs, steps, the data of a step, its update
    evaluate, early_stopping                 metrics, the best epoch, convergence
    context                                  checkpoints, heartbeats and cancellation
    hyperparameters, precision, memory       overrides of the protocol, floating-point formats, exhausted memory

Imports `nn`, `tasks`, `datasets`, `protocols` and `storage`; knows nothing of processes, daemons or the store.
"""
