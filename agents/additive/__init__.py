"""Search by sums of what single replacements bring: the agent `block-additive`.

    history ──> parent, vectors of decisions ──> effects of single decisions ──> sum of a member
                                                       │                              │
                     solver of the best sums under the constraints <──┘      residual: Gaussian process

| module       | content                                                            |
|--------------|--------------------------------------------------------------------|
| `vectors`    | networks as vectors of decisions, and their replacements           |
| `effects`    | effects of single decisions, by weighted ridge regression          |
| `program`    | a multiple-choice knapsack, solved exactly, best solutions first   |
| `members`    | the members of the best sums that meet the constraints             |
| `surrogate`  | the sum, and a Gaussian process of what it misses                  |
| `candidates` | candidates of an acquisition: the best sums, and mutations         |
| `opening`    | the first suggestions: replacements of one decision of the parent  |
| `search`     | the agent                                                          |

Bercovich et al.: Puzzle, Distillation-Based NAS for Inference-Optimized LLMs (2024).
"""
