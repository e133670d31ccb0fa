"""Effects of edits: what a named change of a network, or of its training, brings.

    results of tasks ──> columns of one task, protocol and pretraining   (`results`)
    networks ──> traits ──> pairs that differ in one trait ──> changes   (`traits`, `pairs`, `networks`)
    trainings of one network ──> changes of the recipe                   (`recipes`)
    runs and those that they change ──> edits of values, files and networks  (`runs`)
    pairs in one column ──> mean effect with an interval                 (`estimate`, `effects`)

Two networks are compared only where task, recipe, pretraining and size of the input are the same, and
two trainings only of one network.
"""
