"""Zero-cost proxies as knowledge of an agent: features of a surrogate, and an initial design.

Scores of untrained networks (`archive.store.proxies`) rank a task's networks before any is trained.
Single proxies are unreliable: on NAS-Bench-201 `synflow` ranks the best cell 15th of 8,765, `jacov` 1,705th. They
enter as features with weights learnt from the evaluations of a study, never as a filter.
"""
