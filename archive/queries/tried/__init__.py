"""What was tried: which runs are asked for, what each changes, and which came from which.

| module        | concept                                                        |
|---------------|----------------------------------------------------------------|
| `filters`     | runs by words, by conditions on their values, by what they are |
| `changes`     | what a run changes of another one                              |
| `differences` | differences of source files as text                            |
| `matches`     | runs that a planned run repeats, or is near to                 |
| `pairs`       | configurations beside those that they are changes of           |
| `tree`        | the runs of a study as trees                                   |
| `lines`       | the ways to the best runs, and what was tried beside them      |
| `details`     | everything that is kept of one run                             |

`archive.queries.runs` returns the runs, `archive.queries.repeats` compares them beyond noise.
"""
