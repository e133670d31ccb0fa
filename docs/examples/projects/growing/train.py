from sklearn.neural_network import MLPClassifier


def fit(trial):
    data, settings = trial.data(), trial.parameters
    widths = [settings["width"]] * settings.get("depth", 1)
    model = MLPClassifier(widths, learning_rate_init=settings["lr"], max_iter=20)
    model.fit(data.train.inputs.reshape(len(data.train), -1), data.train.targets)
    valid = data.valid.inputs.reshape(len(data.valid), -1)
    return {"valid_accuracy": model.score(valid, data.valid.targets)}
