"""Several objectives of a study for agents: scores, and suggestions that extend the front.

| module           | holds                                                                     |
|------------------|---------------------------------------------------------------------------|
| `goals`          | the objectives, and the scores of a history for them                      |
| `front`          | front of estimated scores, and the reference point of its volumes         |
| `selection`      | suggestions of greatest expected hypervolume improvement                  |
| `recommendation` | recommended Pareto set of a study with noise                              |

`archive.objectives` has objectives, `archive.objectives.pareto` dominance and hypervolumes, and
`archive.agents.acquisition.ehvi` the acquisition.
"""
