"""The tests, in folders that follow the package; `tests.support` has their shared parts."""
