"""Zero-cost proxies in the archive: scores of untrained networks on a task, one relationship a
network and source.

    (:Architecture)-[:MEASURED {source, proxy_synflow, …}]->(:Task)

A source is one set of definitions: those of `archive.trainer.proxies`, or a published table. Scores
of different sources are not comparable, so readers use one source at a time. Scores of a network
are stored once and shared by all studies of the task.
"""
