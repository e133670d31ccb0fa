"""Engines that start trainers, for the tests: Slurm and Ray on this machine."""
