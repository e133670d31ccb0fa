"""Data sets: their files, located, read, cut into parts and cached.

    sources.locate ── files ──> readers ── rows ──> layout.cut ── parts ──> cache ──> splits

`readers.load` runs this chain for published data sets, `user_readers` and `targets` read files of
users, `scikit_learn` the two data sets of that package. Parts are computed once and cached below
`ARCHIVE_HOME/data`: the processes of all trials map the same pages. Imports `protocols` and
`storage`, and no torch.
"""
