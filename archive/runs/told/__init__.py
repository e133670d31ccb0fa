"""Runs that the program which made them tells of, such as those of a language model.

| module     | concept                                                           |
|------------|-------------------------------------------------------------------|
| `told_run` | a run as it is told, and what it must be                          |
| `telling`  | its way into the archive                                          |
"""
