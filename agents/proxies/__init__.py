"""Zero-cost proxies as knowledge of an agent: features of a surrogate, and an initial design.

Scores of untrained networks (`archive.store.proxies`) rank a task's networks before any is trained. Single proxies are
unreliable: on NAS-Bench-201 they rank the best cell between 15th and 1,851st of 9,445. They enter as features whose
weights are learnt from the evaluations of a study, never as a filter.
"""
