"""The database over Bolt: connection, driver errors, write lock, read-only guard, user queries.

Imports the server.
"""
