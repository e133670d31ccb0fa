from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import archive
from archive import agents, space

x, y = load_digits(return_X_y=True)


def objective(parameters):
    widths = [layer["width"] for layer in parameters["layer"]]
    model = MLPClassifier(widths, learning_rate_init=parameters["lr"], max_iter=20)
    return model.fit(x[:1200], y[:1200]).score(x[1200:], y[1200:])


search = space.Space(
    depth=space.integer(1, 3),
    layer=space.repeat({"width": space.integer(8, 64, log=True)}, "depth"),
    lr=space.real(1e-4, 1e-1, log=True),
)
with archive.connect() as store:
    study = agents.study(store, "ported", search, objective="accuracy:maximise")
    for _ in range(10):
        (trial,) = study.ask("portfolio")
        study.tell(trial, objective(trial.parameters))
    print(study.best().value)
