"""What a run is in the archive: what it evaluated, and the run that it is a change of.

| module    | concept                                  |
|-----------|------------------------------------------|
| `graphs`  | what a run evaluated, as its study has it |
| `parents` | the run that a run is a change of        |
"""
