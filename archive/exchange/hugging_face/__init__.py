"""Configurations of published language models as decoders, and back.

    from archive.exchange.hugging_face.reading import read_config

    published = read_config({"model_type": "llama", ...}, source="config.json")
    published.design.graph()

A configuration becomes values under usual names, these a design of blocks
(`archive.architecture.decoders`), and the design a graph.

| module          | content                                                           |
|-----------------|-------------------------------------------------------------------|
| `config`        | values of a configuration, and their checks                       |
| `family`        | a family of models: what its configurations leave unsaid          |
| `mixers`        | readers of the mixers                                             |
| `feed_forwards` | readers of the feed-forward parts                                 |
| `layers`        | the layers of a configuration whose layers differ                 |
| `preparing`     | values of a configuration under the usual names                   |
| `families`      | the table of families                                             |
| `reading`       | a configuration as a design                                       |
| `writing`       | a design as a configuration                                       |
| `storing`       | a published model in the archive                                  |
"""
