"""Tasks and their training protocols: built-in ones, tables, files of users."""
