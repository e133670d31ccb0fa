"""Data sets: their files, located, read, cut into parts and cached.

    sources.locate ── files ──> readers ── rows ──> layout.cut ── parts ──> cache ── mapped into
    memory ──> splits

`loading` runs this chain for published data sets, `user_readers` reads files of users,
`scikit_learn` the two data sets of that package. Parts are computed once and cached below
`ARCHIVE_HOME/data`: all trials, each in a process of its own, map the same pages. Imports
`protocols` and `storage`, and no torch.
"""
