"""Limits of a daemon and of its trials: time, memory, temporary files.

time_limit         when a daemon stops claiming, and when it ends
trial_limits       which limit a trial exceeds
trial_memory       memory of a trial's processes
scratch            temporary files of trials, and their space
"""
