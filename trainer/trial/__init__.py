"""A trial: one attempt to train a proposal, in a separate process.

    spec, messages            a specification for the trial, messages for the daemon
    process, fork_server      the daemon's side: starts the process, reads its messages, kills it
    spare                     the process of the next trial, connected to its GPU
    main, log                 the process itself and its log file
    process_tree              all processes of a trial
    devices, costs            devices of this machine; costs of a network on one
    failures                  classification of exceptions

Imports `fit`, `morphism`, `tasks` and `storage`, never `daemon`. torch is loaded in the processes
of trials alone.
"""
