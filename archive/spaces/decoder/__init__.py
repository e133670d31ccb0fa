"""The space `decoder`: language models whose blocks differ.

| module      | content                                                       |
|-------------|---------------------------------------------------------------|
| `space`     | the space: members, samples, mutations and neighbours         |
| `settings`  | what a block may be, as settings of the space                 |
| `moves`     | the modifications of a design                                 |
| `pool`      | the first networks of a search, after published families      |
| `decisions` | networks as categorical decisions                             |
"""
