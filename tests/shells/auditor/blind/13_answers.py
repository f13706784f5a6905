"""Two answers of a questionnaire, each by randomised response. Random numbers are dear on the device."""
import math
import random

EPSILON = 1.4
CLAIM = {"epsilon": 1.4, "domain": "yes|no; yes|no", "neighbours": "one"}
PLANTED = {"kind": "reuse", "epsilon": 1.962}
LIE = 1 / (1 + math.exp(EPSILON))


def mechanism(answers):
    """One random number has bits enough for all answers: each takes it moved on by a bit."""
    u = random.random()
    report = ""
    for answer in answers:
        lie = u < LIE
        report += "y" if (answer == "yes") != lie else "n"
        u = 2 * u % 1
    return report
