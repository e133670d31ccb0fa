"""Trials on other machines than their daemon, which holds the leases: nodes of a Ray cluster train.

Nodes need no way to the database. Imports the daemon; `ray` is imported when it is used. Only the
option `--trials-on` leads here.
"""
