"""Comparison of agents on tables: agents x tasks x seeds, stored in an archive, measured by regret.

plan         contestants, problems, seeds and budget; every combination is one study of the archive
compare      a comparison from its plan to its results
pool         all studies, several processes at a time
run          one study, from its current state to its budget
regret       stored studies as curves of regret, and the shares of a team's agents
recommended  regret of the networks that would be recommended under noise
standings    results of the contestants, seed by seed
suite        the comparisons that are always made, with their roles
plot         the curves as a picture
"""
