"""Tasks by name, with the training protocols of each.

    registry                     tasks by name, those of other packages and of files
    base, builtin                trained tasks: the class, and the built-in ones
    tabular                      tasks that a table answers
    user_files, file_access      tasks on files of users, and which files may be opened

Imports `datasets` and `protocols`. Naming a task loads neither torch nor its data.
"""
