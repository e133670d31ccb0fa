"""The tests, in folders that follow the package; `tests.support` is what they share."""
