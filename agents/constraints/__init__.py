"""Constraints of studies for agents.

| module        | holds                                                                        |
|---------------|------------------------------------------------------------------------------|
| `slacks`      | slacks of a history, and penalised scores for agents without constraints     |
| `feasibility` | probability of feasibility, as a part of the posterior that acquisitions see |

`archive.constraints` has bounds, violations and known costs.
"""
