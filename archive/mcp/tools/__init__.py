"""Functions of an archive that the server offers as tools, a module for each subject."""
