"""`archive bench`: comparison of agents on tables, and the speed of this machine."""
