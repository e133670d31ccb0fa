"""Engines that start trainers: this machine, Slurm, and engines of other packages.

The queue with its leases stays in the database. A launcher only keeps `archive trainer` processes
alive, so that no engine needs to know a proposal, and a trainer that is killed costs a lease and no
result.
"""
