"""The tests; `tests.support` and `tests.servers` are what they share."""
