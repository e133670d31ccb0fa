"""Promotions between the rungs of a study, in the transaction of a result.

The rule is in `archive.queue.successive_halving`. Imports the queue's leases, the store and the
packages below it.
"""
