"""Further lies of `lying_aggregators`: about results, and about what a study of sums costs and adds up.

Each is spelled and signed as an honest one. So nothing but the figures gives it away.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

from attrs import evolve

from anon.protocols.sum.standing import arrangement_of
from anon.study.manifest import Manifest
from tests.attacks.lying_aggregators import HISTOGRAMS, KINDS, SUMS, TEXTS, WHOLE, finished, told
from tests.support.forged_studies import Forge
from tests.support.sums import MARGINALS, RULE, many, sum_study
from tests.support.world import directed, study_text

__all__ = ["KINDS"]

_ADDITIVE = 'epsilon = 2.0\n[learning]\nclassifier = "additive"\nscore_share = 0.2\nbase_rate = 0.4'
_DECLARED = {
    'missing = "Male"': 'missing = "Male"\nexpects = [-1, 1]',
    "cuts = [30, 50]": "cuts = [30, 50]\nexpects = 1",
}
_AVERAGING = 'kind = "averaging"\nepsilon = 1.0\nstrength = 0.1'


def _directed(text: str) -> str:
    for plain, expected in _DECLARED.items():
        text = text.replace(plain, expected)
    return text


TEXTS |= {
    "additive": study_text("cuts").replace("epsilon = 2.0", _ADDITIVE),
    "additive pairs": study_text("cuts").replace("epsilon = 2.0", f"subset_size = 2\n{_ADDITIVE}"),
    "directed": _directed(study_text("cuts").replace("epsilon = 2.0", _ADDITIVE)),
    "marginals": sum_study(MARGINALS),
    "rule": sum_study(RULE),
    "local rule": directed("rule"),
    "averaging": sum_study(_AVERAGING, keys=many()),
}
ADDITIVE = ("additive", "additive pairs", "directed", "bits")
RULES = ("rule", "local rule")
LINEAR = ("moments", "gradient", "averaging")
SUMMED = (*SUMS, "marginals", "rule", "averaging")


def republished(forge: Forge, change: Callable[[dict[str, Any]], object], name: str = "model") -> Forge:
    """The same study with a result that was changed and spelled anew."""
    plain = json.loads(forge.bodies[name, 0])
    change(plain)
    forge.bodies[name, 0] = (json.dumps(plain, sort_keys=True, separators=(",", ":")) + "\n").encode()
    return forge


def moved(rng: Random, numbers: list[float]) -> None:
    """Move one number, by a part in a thousand at least."""
    at = rng.randrange(len(numbers))
    numbers[at] += rng.choice([-1, 1]) * max(0.001, abs(numbers[at]) * rng.uniform(0.001, 0.3))


@told("a weight that the sums do not give")
def _(rng: Random) -> Forge:
    return republished(finished(rng, *LINEAR, sizes=[WHOLE]), lambda model: moved(rng, model["weights"]))


@told("log-odds that the sums do not give")
def _(rng: Random) -> Forge:
    def change(model: dict[str, Any]) -> None:
        moved(rng, rng.choice(model["tables"])["log_odds"])

    return republished(finished(rng, "tables", "marginals", *RULES, sizes=[WHOLE]), change)


@told("log-odds that the additive classifier does not give")
def _(rng: Random) -> Forge:
    def change(model: dict[str, Any]) -> None:
        moved(rng, rng.choice(model["tables"])["log_odds"])

    return republished(finished(rng, *ADDITIVE, sizes=[WHOLE]), change)


@told("smaller errors than a model has")
def _(rng: Random) -> Forge:
    def change(model: dict[str, Any]) -> None:
        for table in model["tables"]:
            table["errors"] = [error / 2 for error in table["errors"]]
        model["tables"][0]["errors"][0] += 0.01

    return republished(finished(rng, *ADDITIVE, "tables", "marginals", sizes=[WHOLE]), change)


@told("a chance that noise alone does not have")
def _(rng: Random) -> Forge:
    def change(model: dict[str, Any]) -> None:
        model["chance"] = abs(model["chance"] - rng.uniform(0.001, 0.01))
        model["shown"] = model["chance"] <= 0.015

    return republished(finished(rng, *HISTOGRAMS, *ADDITIVE, "tables", "marginals", *RULES, sizes=[WHOLE]), change)


@told("a model that says it was shown")
def _(rng: Random) -> Forge:
    def change(model: dict[str, Any]) -> None:
        model["chance"], model["shown"] = model["chance"] / 1000, True

    return republished(finished(rng, *HISTOGRAMS, *ADDITIVE, "tables", "marginals", *RULES, sizes=[WHOLE]), change)


@told("a belief that the answers do not give")
def _(rng: Random) -> Forge:
    def change(model: dict[str, Any]) -> None:
        key = rng.choice(["heard", "members", "enough", "against"])
        value = model["belief"][key]
        model["belief"][key] = value + 1 if isinstance(value, int) else abs(value - 0.01)

    return republished(finished(rng, *RULES, sizes=[WHOLE]), change)


@told("rows that were not drawn")
def _(rng: Random) -> Forge:
    def change(rows: dict[str, Any]) -> None:
        row = rng.choice(rows["rows"])
        row[-1] = "0" if row[-1] == "1" else "1"

    return republished(finished(rng, "marginals", sizes=[WHOLE]), change, "rows")


@told("a question in the model that nobody was asked")
def _(rng: Random) -> Forge:
    def change(model: dict[str, Any]) -> None:
        asked = rng.choice([model["label"], *model["features"]])
        asked[rng.choice(["query", "description"])] += " Truly."

    return republished(finished(rng, *HISTOGRAMS, *ADDITIVE, *SUMMED, "local rule", sizes=[WHOLE]), change)


def _of_another(rng: Random, change: Callable[[Manifest], Manifest]) -> Forge:
    """A whole study of sums under a manifest that was changed before it was signed."""
    forge = Forge.begin(TEXTS[rng.choice(SUMMED)], rng.getrandbits(32), change)
    forge.enrol(WHOLE)
    forge.close()
    forge.send(forge.members)
    return forge.finish()


@told("a sum cheaper than it is")
def _(rng: Random) -> Forge:
    names = rng.choice([["epsilon"], ["epsilon_per_attribute"], ["epsilon", "epsilon_per_attribute"]])
    less = rng.randint(2, 9)
    return _of_another(rng, lambda one: evolve(one, **{name: getattr(one, name) // less for name in names}))


@told("a survey of a sum that says it costs less")
def _(rng: Random) -> Forge:
    def change(one: Manifest) -> Manifest:
        return evolve(one, surveys=tuple(evolve(survey, epsilon=survey.epsilon // 2) for survey in one.surveys))

    return _of_another(rng, change)


@told("less noise than a sum needs")
def _(rng: Random) -> Forge:
    less = rng.randint(2, 9)

    def change(one: Manifest) -> Manifest:
        arrangement = arrangement_of(one)
        noises = [Fraction(planned.sigma_squared, less) for planned in arrangement.sums]
        pairs = zip(arrangement.sums, noises, strict=True)
        sums = tuple(evolve(planned, sigma_squared=noise) for planned, noise in pairs)
        return evolve(one, part=evolve(arrangement, sums=sums).to_bytes())

    return _of_another(rng, change)


@told("a sum that fewer make than is said")
def _(rng: Random) -> Forge:
    def change(one: Manifest) -> Manifest:
        return evolve(one, part=evolve(arrangement_of(one), minimum=3).to_bytes())

    return _of_another(rng, change)
