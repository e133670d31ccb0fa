"""Comparison of agents: agents x tasks x seeds on tables, stored in an archive, measured by regret.

plan     contestants, problems, seeds and budget; every combination is one study of the archive
run      one study, from its current state to its budget
pool     all studies, several processes at a time
regret   results of the studies as curves and rows
plot     the curves as a picture
"""
