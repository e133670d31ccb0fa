"""Parameters of a search: numbers, choices and groups of them, with conditions and constraints.

| module            | what it defines                                                            |
|-------------------|----------------------------------------------------------------------------|
| `ranges`          | domains of whole and real numbers                                          |
| `domains`         | all domains: those, choices and constants                                  |
| `expressions`     | conditions and constraints, and their grammar                              |
| `tokens`          | the words of their text                                                    |
| `parser`          | how their text is read                                                     |
| `declaration`     | what a user writes: parameters by name, groups, defaults, priors           |
| `leaves`          | the flat parameters of a declaration, each behind those that it depends on |
| `nesting`         | configurations as trees                                                    |
| `parameter_space` | all configurations: codes, sampling, mutation, checks                      |
| `batches`         | many configurations at a time, as codes                                    |
| `files`           | spaces in Python and TOML files                                            |

`archive.space` has what users write under short names.
"""
