"""Zero-cost proxies as knowledge of an agent: features of a surrogate, and an initial design.

Scores of untrained networks (`archive.store.proxies`) rank a task's networks before any is trained.
Single proxies are unreliable: on NAS-Bench-201 `synflow` ranks the best cell 15th of 8,765, `jacov` 1,705th. They
enter as features with weights learnt from the evaluations of a study, never as a filter.

`study_scores` reads the scores of a study's networks; `knowledge` makes features and designs of
them. `archive.store.proxies` names all other modules of proxies.
"""
