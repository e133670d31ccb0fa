"""The trainer daemon: claims proposals, starts a trial for each, and delivers the results to the
store.

    trainer                              the loop
    options, paths, retry, shutdown      its options, folders, start and end
    limits/                              time, memory and temporary files
    in_flight, outcomes                  claims with their trials, and how they end
    client/                              claims, leases and notices, across outages of the store
    result_spool, spool_owner            undelivered results on disk, and the daemons that deliver them
    events, logs, prometheus             events of the loop, log format, metrics
    observation                          trials, as `archive.trainer.observers` receive them

Imports every other package of the trainer but `benchmarks`; never torch, which only the processes
of trials load.
"""
