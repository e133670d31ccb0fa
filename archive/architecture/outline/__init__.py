"""Outlines: networks as stages, blocks and modules, and the named changes between two outlines.

| module       | content                                                                        |
|--------------|--------------------------------------------------------------------------------|
| `shapes`     | shapes of the layers' outputs, computed without PyTorch                         |
| `wiring`     | inputs, users and shapes of the layers, as the others read them                 |
| `modules`    | modules: convolution with norm and activation, MLP, squeeze-excitation, …       |
| `attention`  | attention modules, with their heads                                             |
| `condensing` | the graph of modules, and the chain of parts between its cuts                   |
| `assembly`   | which modules make one block                                                    |
| `blocks`     | blocks of modules, with their properties                                        |
| `outline`    | the outline of a network: stem, stages, head                                    |
| `words`      | modules as texts                                                                |
| `changes`    | named changes between two outlines                                              |
| `summary`    | an outline as rows of a table, and the rows of stored blocks                    |
| `picture`    | diagrams by modules                                                             |
"""
