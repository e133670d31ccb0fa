"""Comparison of agents: agents x tasks x seeds on tables, stored in an archive, measured by regret.

plan     what is compared: contestants, problems, seeds, budget; every combination is one study of the archive
run      one study, from wherever it stands to its budget
pool     all studies, several processes at a time
regret   what the studies hold, as curves and rows
plot     the curves as a picture
"""
