import numpy as np
from sklearn.ensemble import RandomForestRegressor

import archive


@archive.recipe(tasks="regression")
def fit(trial):
    data, parameters = trial.data(), trial.parameters
    mean, deviation = data.target
    model = RandomForestRegressor(parameters["trees"], max_depth=parameters["depth"])
    model.fit(data.train.inputs, mean + deviation * data.train.targets)
    errors = model.predict(data.valid.inputs) - (mean + deviation * data.valid.targets)
    return {"valid_mae": np.abs(errors).mean(), "valid_rmse": np.sqrt(np.mean(errors**2))}
