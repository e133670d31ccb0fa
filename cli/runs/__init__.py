"""Commands on recorded runs: `record`, `tried` and `compare`."""
