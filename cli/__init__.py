"""The command `archive`: each command parses, calls one library function and renders."""
