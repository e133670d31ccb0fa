"""One block of a trained decoder at a time replaced, briefly distilled, and measured.

    parent, settings of its space ──> replacements ──> distillation of the new part ──> loss, divergence

| module         | content                                                          |
|----------------|------------------------------------------------------------------|
| `replacements` | the library: another mixer or feed-forward part in one block     |
| `students`     | blocks with a new part, which begins with the old part's weights |
| `distillation` | training of the new part, and the loss of the whole network      |

Bercovich et al.: Puzzle, Distillation-Based NAS for Inference-Optimized LLMs (2024), sections 3 and 4.
`archive.searches.blocks` stores the scores.
"""
