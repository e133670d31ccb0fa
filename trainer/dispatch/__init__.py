"""Trials on other machines than their daemon: one daemon holds the leases, the nodes of a cluster
train.

Nodes need no way to the database. Imports the daemon; `ray` is imported when it is used.
"""
