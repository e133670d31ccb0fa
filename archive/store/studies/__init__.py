"""Studies: creation, reading, deletion."""
