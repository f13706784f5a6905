"""Made-up people with the columns of Adult, for a demo where the census data are not installed.

Shares and relations are round figures in the likeness of Adult; no row of it is repeated here.
"""

from __future__ import annotations

import random
from math import exp

from examples.census.data import Row

_OWN_OR_PUBLIC = ("Self-emp-not-inc", "Self-emp-inc", "Local-gov", "State-gov", "Federal-gov")
_SCHOOLING = ((7, 13), (9, 32), (10, 29), (13, 17), (14, 9))
"""(years as the census counts them, share in 100)."""


def people(count: int, seed: int) -> list[Row]:
    """So many people. Deterministic in both arguments."""
    generator = random.Random(f"made-up census {seed}")
    return [_person(generator) for _ in range(count)]


def _person(generator: random.Random) -> Row:
    age = min(90, 17 + int(generator.gammavariate(2.6, 8.5)))
    education = generator.choices(*zip(*_SCHOOLING, strict=True))[0]
    male = generator.random() < 0.67
    married = generator.random() < (0.12 if age < 26 else 0.52)
    hours = max(1, min(99, round(generator.gauss(42 if male else 37, 11))))
    gained, lost = generator.random() < 0.06 + 0.04 * (education > 12), generator.random() < 0.045
    gain = generator.choice((3_000, 7_500, 15_000, 99_999)) if gained else 0
    loss = generator.choice((1_500, 1_900, 2_400)) if lost else 0
    own = generator.random() < 0.25
    white = generator.random() < 0.85
    here = generator.random() < 0.9
    drawn = (
        -4.6
        + 2.4 * married
        + 0.38 * (education - 9)
        + 0.045 * (min(age, 55) - 30)
        + 0.035 * (hours - 40)
        + 2.4 * (gain > 5_000)
        + 1.2 * (loss > 0)
        + 0.3 * male
        + 0.2 * own
        + 0.2 * white
        + 0.2 * here
    )
    rich = generator.random() < 1 / (1 + exp(-drawn))
    spouse = "Husband" if male else "Wife"
    return {
        "age": age,
        "workclass": generator.choice(_OWN_OR_PUBLIC) if own else "Private",
        "education_num": education,
        "marital_status": "Married-civ-spouse" if married else "Never-married",
        "relationship": spouse if married else generator.choice(("Not-in-family", "Own-child", "Unmarried")),
        "race": "White" if white else generator.choice(("Black", "Asian-Pac-Islander", "Other")),
        "sex": "Male" if male else "Female",
        "capital_gain": gain,
        "capital_loss": loss,
        "hours_per_week": hours,
        "native_country": "United-States" if here else generator.choice(("Mexico", "Philippines", "Germany", "Canada")),
        "income": ">50K" if rich else "<=50K",
    }
