"""Search of networks with parameters beside them (`archive.spaces.joint`).

`model` has the distances and the covariance of pairs, `candidates` the pairs that are ranked, and
`search` proposes some of them.
"""
