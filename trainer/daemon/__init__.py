"""The trainer daemon: claims proposals, runs a trial for each, delivers the results to the store.

    trainer                          the loop
    options, paths, shutdown         its options, folders and end
    executors                        where trials run, and the handle of each
    placement                        GPUs of the trainer; the device of each trial
    trial_limits, scratch            time, memory and temporary files of trials
    in_flight, outcomes              claims with their trials, and how they end
    client/                          claims, leases and notices, across outages of the store
    result_spool                     undelivered results on disk
    events, logs, prometheus         events of the loop, log format, metrics
    observation                      trials, as `archive.trainer.observers` receive them
    proxy_measurer, proxy_process    zero-cost proxies, measured beside the trials

Imports every other package of the trainer but `benchmarks`; never torch, which only the processes
of trials load.
"""
