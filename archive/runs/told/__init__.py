"""Runs that a program, such as a language model, tells of after it has made them.

| module     | concept                                                           |
|------------|-------------------------------------------------------------------|
| `told_run` | a run as it is told, and what it must be                          |
| `telling`  | its way into the archive                                          |
"""
