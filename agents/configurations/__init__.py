"""Search of configurations of parameters: models of their codes, and candidates as codes.

`embedding` maps codes to vectors, `process` and `forest` model scores, `mixture` weights these,
`candidates` draws and ranks configurations, and `search` proposes some of them.
"""
