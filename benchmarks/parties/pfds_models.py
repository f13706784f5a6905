"""The models of PFDS's table 2: logistic regression, SVM, linear regression, and their private forms per agent.

Objective perturbation: Chaudhuri, Monteleoni and Sarwate 2011, algorithm 2, for rows of norm at most 1. Functional
mechanism: Zhang et al. 2012, algorithm 1, its sensitivity 2 (d + 1)^2 for numbers of at most 1 over the root of d.
Noise is of a seeded generator. Neighbours of both have a record replaced.
"""

from __future__ import annotations

from math import expm1, log, sqrt

import numpy as np

from benchmarks.parties.noise import Array, Generator, radial
from benchmarks.parties.solving import logistic

TASKS = ("logistic", "svm", "linear")
WEAK = 1e-4
"""Lambda of models without noise."""
STRENGTH = 0.01
"""Lambda of objective perturbation."""
BEND = {"logistic": 0.25, "svm": 1.0}
"""The largest second derivative of each loss: that of SVM is a hinge rounded by 1/2 on either side (Huber)."""


def fitted(task: str, rows: Array, labels: Array, strength: float = WEAK, push: Array | None = None) -> Array:
    """The weights that minimise the mean loss, (strength / 2) |w|^2 and push.w. Labels of classes are -1 and 1."""
    if task == "linear":
        left = rows.T @ rows / len(rows) + strength * np.eye(rows.shape[1])
        return np.asarray(np.linalg.solve(left, rows.T @ labels / len(rows)))
    from scipy.optimize import minimize

    signed = rows * labels[:, None]
    extra = np.zeros(rows.shape[1]) if push is None else push

    def value(weights: Array) -> tuple[float, Array]:
        margins = signed @ weights
        if task == "logistic":
            losses, slopes = np.logaddexp(0, -margins), -logistic(-margins)
        else:
            near = np.clip(1.5 - margins, 0, 1)
            losses, slopes = near**2 / 2 + np.maximum(0.5 - margins, 0), -near
        total = losses.mean() + strength / 2 * weights @ weights + extra @ weights
        return float(total), signed.T @ slopes / len(rows) + strength * weights + extra

    found = minimize(value, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return np.asarray(found.x)


def short(rows: Array) -> Array:
    """Rows of norm at most 1, divided by the largest norm that their columns allow."""
    return np.asarray(rows / np.sqrt((rows**2).sum(axis=1).max()))


def perturbed(task: str, rows: Array, labels: Array, epsilon: float, spring: Generator) -> Array:
    """Objective perturbation by one agent, whose rows have norm at most 1."""
    count, bend, strength = len(rows), BEND[task], STRENGTH
    over = bend / (count * strength)
    left = epsilon - log(1 + 2 * over + over**2)
    if left <= 0:
        strength += max(bend / (count * expm1(epsilon / 4)) - strength, 0)
        left = epsilon / 2
    push = radial(spring, 1, rows.shape[1])[0] * 2 / left / count
    return fitted(task, rows, labels, strength, push)


def functional(rows: Array, labels: Array, epsilon: float, spring: Generator) -> Array:
    """The functional mechanism for linear regression; rows have entries of at most 1 over the root of d."""
    size = rows.shape[1]
    width = 2 * (size + 1) ** 2 / epsilon
    upper = np.triu(spring.laplace(0, width, (size, size)))
    square = rows.T @ rows + upper + np.triu(upper, 1).T
    product = rows.T @ labels + spring.laplace(0, width, size) / 2
    square += 4 * sqrt(2) * width * np.eye(size)
    values, vectors = np.linalg.eigh(square)
    kept = values > 0
    return np.asarray(vectors[:, kept] @ ((vectors[:, kept].T @ product) / values[kept]))


def error_of(task: str, rows: Array, labels: Array, models: Array) -> float:
    """The error of the majority of models (models, columns), or of their mean: of classes, or squared."""
    scores = rows @ models.T
    if task == "linear":
        return float(np.mean((np.clip(scores, -1, 1).mean(axis=1) - labels) ** 2))
    return float(np.mean(np.where((scores > 0).mean(axis=1) > 0.5, 1, -1) != labels))
