"""A trial: one attempt to train a proposal, in a separate process.

    spec, messages            what the daemon sends and receives
    process, fork_server      the daemon's side: starts the process, reads its messages, kills it
    frames, process_tree      messages on the pipe; all processes of a trial
    main, log                 the process itself and its log file
    failures                  classification of exceptions
    inheritance               specification of trials that start from an ancestor's weights

Imports `fit`, `morphism`, `tasks` and `storage`, never `daemon`. torch is loaded in the processes
of trials alone.
"""
