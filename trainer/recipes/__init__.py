"""Recipes: functions that train one network, by name.

    def fit(trial: TrialContext) -> FitResult

    base, context          what a recipe receives and returns
    curve, checkpoint      reported metrics; the state that a trial resumes from
    run                    runs a recipe in a context
    registry               recipes by name: built-in, from packages, from the file of this machine
    source, command        where a recipe comes from; one that runs a program

The default recipe is `archive.trainer.fit.train`; it uses the public context alone. Imports
`tasks`, `nn`, `protocols` and `storage`. Nothing here loads torch before a recipe runs.
"""
