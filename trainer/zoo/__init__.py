"""Published networks of model packages (zoos), as architectures with their published results.

| module      | content                                                                       |
|-------------|-------------------------------------------------------------------------------|
| `published` | a published network with its results, and what the name of a recipe says      |
| `timm_zoo`  | timm: tables of results and speeds, and the models without weights            |
| `tv_zoo`    | torchvision: the same from the metadata of its weights                        |
| `building`  | a model without weights as an architecture, in a process of its own           |
| `processes` | several such processes, with limits of time and memory                        |
| `importing` | the import: what is missing is built, stored, or listed with its reason       |
| `sketching` | a network of any space as layers that are compared with published ones        |
"""
