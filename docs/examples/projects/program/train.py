import argparse

import numpy as np
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float)
parser.add_argument("--steps", type=int)
options = parser.parse_args()
x, y = load_digits(return_X_y=True)
weights = np.zeros((64, 10))
for _ in range(options.steps):
    scores = np.exp(x[:1200] / 16 @ weights)
    errors = scores / scores.sum(1, keepdims=True) - np.eye(10)[y[:1200]]
    weights -= options.rate * x[:1200].T @ errors / 1200
print("accuracy:", np.mean((x[1200:] @ weights).argmax(1) == y[1200:]))
