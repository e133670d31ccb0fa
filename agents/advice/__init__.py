"""Advice about a study for a proposer beside its agent, such as a language model.

| module              | contents                                                                     |
|---------------------|------------------------------------------------------------------------------|
| `suggesting`        | `suggest`: the next proposals of an agent; `predict_candidates`: the caller's |
| `knowledge`         | `state`: best results, front, effects, uncertain regions, quality of the model |
| `overriding`        | `consider`: whether a candidate should replace the agent's next suggestion     |
| `override_trust`    | the rule behind it: predictions, corrected by how earlier overrides did       |
| `study_surrogate`   | the one model behind all predictions, whichever agent searches               |
| `learnt_effects`    | what each value of a decision brings, and where the model is uncertain        |
| `decisions`         | the decisions of networks by name, and their values in words                 |
| `documents`         | the records, which become JSON                                               |

Nothing is written to the archive.
"""
