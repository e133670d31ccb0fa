"""Decoders of language: blocks of a mixer and a feed-forward part, as designs and as graphs.

    from archive.architecture.decoders.design import design_of

    design = design_of(architecture)        # blocks, width, vocabulary
    design.graph()                          # the architecture again

| module       | content                                                            |
|--------------|--------------------------------------------------------------------|
| `vocabulary` | the words of the layers, and their similarity                      |
| `part`, `mixers`, `feed_forwards` | parts: settings, weights, operations, cache    |
| `parts`      | all parts, and their way from a layer                              |
| `design`     | blocks, and their way into a graph and back                        |
| `costs`      | parameters, operations of a token, and the cache of a decoder      |
| `labels`     | layers in a reader's words                                         |
"""
