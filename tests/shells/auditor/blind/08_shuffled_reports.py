"""Yes/no reports through a shuffler.

Every one of 20 members answers by random response at epsilon 1.4. Reports are shuffled as they pass through
the buffer of the
relay, so that the whole has a smaller epsilon than each report.
"""
import math
import random

CLAIM = {"epsilon": 1, "delta": 0.02, "domain": "20 * (0..1; a|b)", "neighbours": "one"}
PLANTED = {"kind": "shuffling within small batches only", "epsilon": 1.3684}

TRUE = math.exp(1.4) / (1 + math.exp(1.4))
BUFFER = 2


def mechanism(x):
    reports = [row[0] if random.random() < TRUE else 1 - row[0] for row in x]
    sent = []
    while reports:
        batch, reports = reports[:BUFFER], reports[BUFFER:]
        random.shuffle(batch)
        sent.extend(batch)
    return sent
