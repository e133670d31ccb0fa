"""Commands on recorded runs: `record` and `tried`."""
