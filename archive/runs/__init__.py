"""Runs of any program on record: `archive record -- python train.py --lr 3e-4`.

A run is a proposal with its result, in a study of the space `program`. What the program was given
is its configuration: the arguments, and a digest of its source files.

| module         | concept                                                                        |
|----------------|--------------------------------------------------------------------------------|
| `secrets`      | what must not be kept, and its mask                                            |
| `arguments`    | arguments of a command as named values                                         |
| `code_state`   | source files at the start of a run, and the difference of two such states      |
| `run_log`      | output of a program, within a bound                                            |
| `measurements` | metrics that a program prints or writes to files                               |
| `tracker_files` | files for TensorBoard and W&B that a program writes                           |
| `run_folder`   | the folder of one run: all that is known of it, on disk                        |
| `program`      | the process of a program, from its start to its end                            |
| `life_cycle`   | begin and end of a run                                                         |
| `recorded_command` | a command under its recorder                                               |
| `recording`    | `archive.record(…)` within a Python program                                    |
| `callbacks`    | what Lightning and Hugging Face's Trainer tell of a run                        |
| `captured`     | the network of a live module                                                   |
| `surroundings` | packages, devices and settings of a machine                                    |
| `known_runs`   | runs of this home, by what they were given and by their network                |
| `identity`     | what a run evaluated, and the run that it is a change of                       |
| `delivery`     | from folders of runs to the archive                                            |
| `told`         | runs that the program which made them tells of                                 |
| `history`      | runs of other tools and of tables, as they are found there                     |
| `imported`     | from such runs to the archive                                                  |
| `comparison`   | two runs side by side, and whether they differ by more than noise              |
| `agent_instructions` | the page that a language model in a loop of runs reads                   |
| `texts`        | differences and output of runs for readers                                     |

What was tried is read by `archive.queries.runs`.

The program never waits for the archive: a run is a folder on disk until a process of its own
delivers it. A run whose recorder was killed is delivered by the next one.
"""
