"""The work queue: proposals, their admission, claims, leases, updates, successive halving, workers.

Imports the store and the packages below it.
"""
