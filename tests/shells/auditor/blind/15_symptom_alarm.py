"""First of five symptoms that reaches three patients, by the sparse vector technique.

Half of the budget is for the threshold and half for the queries. Counts only rise with a patient, so the noise of the
queries needs no factor 2. The search stops at the first symptom above the threshold; None says that there is none.
"""
import random

CLAIM = {"epsilon": 2, "domain": "3 * (0|1; 0|1; 0|1; 0|1; 0|1)", "neighbours": "lacks"}
PLANTED = {"kind": "sparse vector: the threshold's noise is drawn anew for each query", "epsilon": 2.8812}

EPSILON, THRESHOLD = 2.0, 3


def noise(rate):
    return int(random.expovariate(rate)) - int(random.expovariate(rate))


def mechanism(x):
    for symptom in range(5):
        count = sum(row[symptom] for row in x)
        if count + noise(EPSILON / 2) >= THRESHOLD + noise(EPSILON / 2):
            return symptom
    return None
