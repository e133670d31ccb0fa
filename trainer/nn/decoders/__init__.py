"""Decoders of language as torch modules.

| module         | content                                                          |
|----------------|------------------------------------------------------------------|
| `builder`      | the builder of the space `decoder`, without torch                |
| `network`      | the network: blocks, full passes, and passes with a cache        |
| `attention`    | grouped causal attention, with a window where there is one       |
| `recurrences`  | chunked gated delta rule and state-space duality, as functions   |
| `gated_delta`, `mamba2` | the mixers around them                                  |
| `feed_forward` | GELU, SwiGLU and experts                                         |
| `timescales`   | initial decays of the recurrences                                |
| `mixing`       | what mixers share: the cache's form, short convolution, norms    |
"""
