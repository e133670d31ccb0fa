"""Tasks by name, with the training protocols of each.

    registry                     tasks by name, with other packages' tasks and files
    base, builtin                trained tasks: the class, and the built-in ones
    tabular, benchmark_tables    tasks that a table answers, and the built-in ones
    user_files, file_access      tasks on files of users, and the permission to open the files
    known_costs                  costs of networks that need no training

Imports `datasets` and `protocols`. Naming a task loads neither torch nor its data.
"""
