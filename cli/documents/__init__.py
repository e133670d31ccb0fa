"""What `--json` writes: one class a document, which the reference is generated from and the output
is tested against.

Only shapes live here; the commands fill them. `registry` says which command writes which.
"""
