"""How well a study of so many people does at several epsilons: the tables of docs/staff/class-size.md.

    python -m benchmarks.class_sizes [--design sums] [--data adult.csv] [--trials 100] [--page docs/staff/class-size.md]
    python -m benchmarks.class_sizes --peers 500 --epsilon 2 --features three    some of the cells

Each trial draws so many people anew from the census data, runs the census example's study on them (examples/census,
with its epsilon replaced) and scores the model on 6,000 people who took no part. In each cell: in how many trials the
model was shown to beat a guess, the ROC AUC, and the accuracy of the answers that it then gives. Measured with all
eleven features, and with three that are known to matter. Deterministic in the seed. Without --data the people come
from the wheel that examples/census names. Writes benchmarks/out/class_sizes.json, and with --page the tables between
the two marks of that page.

--design sums: the same study as one of exact sums, with declared cuts and the noise of two tellers, in groups of up to
2,000. --design rule: those sums start from the directions of `benchmarks.declared` (`kind = "rule"`). Each has a file
and marks of its own. The last column of ROC AUCs is that of these directions by themselves, which ask nobody.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from aggregator.lab.planning.exact_sums import summed
from aggregator.lab.simulation.evaluation import evaluate
from aggregator.lab.simulation.people import People, people_from_rows
from aggregator.lab.simulation.rule import rule_auc
from aggregator.lab.simulation.run import Plan
from aggregator.lab.simulation.simulate import NO_KEYS, learn_once
from aggregator.lab.simulation.sums import learn_summed
from anon.protocols.histogram.sections import OnePacket
from anon.protocols.resolve import resolve
from anon.protocols.sum.rule_section import CalibratedRule
from anon.sharing.drafts import drafted
from anon.study.features import Feature
from anon.study.proposal import Proposal
from benchmarks.declared import ADULT
from benchmarks.figures import Figure, publish
from benchmarks.sums import CUTS
from examples.census.data import DataUnavailable, load, split
from examples.protocols import PROTOCOLS

STUDY = Path(__file__).resolve().parents[1] / "examples" / "census" / "study.toml"
SIZES, EPSILONS = (50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000), (0.5, 1.0, 2.0, 4.0)
SUMMED_SIZES = SIZES[:6]
SCORED, SEED, FEWEST = 6_000, 2017, 5
HOPELESS, WORKS = 0.3, 0.8
"""In fewer studies than the one a model is shown, a class is too small; from the other on it is large enough."""

FEATURES: dict[str, tuple[str, ...]] = {"eleven": (), "three": ("age", "education_num", "marital_status")}
"""Which features a study asks about; none named: all of the example's."""

MARKS: Mapping[str, tuple[str, str]] = {
    "tables": ("<!-- measured by benchmarks.class_sizes -->", "<!-- end of what was measured -->"),
    "sums": ("<!-- measured by benchmarks.class_sizes --design sums -->", "<!-- end of the sums -->"),
    "rule": ("<!-- measured by benchmarks.class_sizes --design rule -->", "<!-- end of the rule -->"),
}
"""Of each design, between which marks of the page its tables are."""


def measure(study: Proposal, people: People, scored: People, size: int, trials: int, seed: list[int]) -> Figure:
    """The figures of `trials` studies of `size` people each."""
    generator = np.random.default_rng(seed)
    plan = Plan.of(resolve(study, NO_KEYS, 0, lambda below: int(generator.integers(below))))
    found = []
    for _ in range(trials):
        chosen = people.take(generator.choice(len(people), size, replace=False))
        exact = plan.manifest.surveys[0].exact
        learned = learn_summed(plan.manifest, chosen, generator) if exact else learn_once(plan, chosen, generator)
        scores = evaluate(learned.model, scored)
        found.append((learned.learnable, scores.auc, scores.accuracy))
    shown, aucs, accuracies = (np.array(column, dtype=float) for column in zip(*found, strict=True))
    return {
        "trials": trials,
        "shown": round(float(shown.mean()), 3),
        **_spread("auc", aucs),
        **_spread("accuracy", accuracies[shown == 1]),
    }


def _spread(name: str, values: NDArray[np.float64]) -> Figure:
    """The mean, and between which values nine in ten trials lie; nothing where there are too few to say."""
    if len(values) < FEWEST:
        return {f"{name}_{part}": None for part in ("mean", "low", "high")}
    low, high = np.quantile(values, (0.05, 0.95))
    return {f"{name}_mean": float(values.mean()), f"{name}_low": float(low), f"{name}_high": float(high)}


def asking(study: Proposal, names: tuple[str, ...], epsilon: float) -> Proposal:
    """The same study with this epsilon, about these features alone; about all of its own where none is named."""
    if not isinstance(study.design, OnePacket):
        raise TypeError("expected a study of one packet")
    features = tuple(one for one in study.features if not names or one.name in names)
    return evolve(study, features=features, design=evolve(study.design, epsilon=epsilon))


def summing(study: Proposal, names: tuple[str, ...], epsilon: float) -> Proposal:
    """The same study as one of exact sums, at a central epsilon, with cuts that staff would declare."""
    asked = asking(study, names, epsilon)
    made, _ = summed(evolve(asked, features=tuple(map(_cut, asked.features))), epsilon)
    return drafted(made)


def ruling(study: Proposal, names: tuple[str, ...], epsilon: float) -> Proposal:
    """The same sums, which start from the directions that were written down before anything was scored."""
    made = summing(study, names, epsilon)
    told = {column.name.replace("-", "_"): column for column in ADULT.columns}
    features = []
    for feature in made.features:
        column = told[feature.name]
        own = column.expects if isinstance(column.expects, tuple) else (column.expects,)
        if feature.categories:
            own = tuple(dict(zip(column.categories, own, strict=True))[category] for category in feature.categories)
        features.append(evolve(feature, expects=own))
    return PROTOCOLS.proposed(evolve(made, features=tuple(features), design=CalibratedRule("rule", epsilon)))


def _cut(feature: Feature) -> Feature:
    return evolve(feature, bins=0, cuts=CUTS[feature.name], shares=()) if feature.name in CUTS else feature


def sum_tables(rows: list[Figure], ruled: bool = False) -> str:
    """The tables of exact sums as Markdown; `ruled`: of those that start from declared directions."""
    begin = _RULED if ruled else _SUMMED
    return "\n\n".join(_both(rows, begin + _SHOWN, begin + _AUC))


def _both(rows: list[Figure], shown: str, auc: str) -> list[str]:
    parts = []
    for many in FEATURES:
        found = [row for row in rows if row["features"] == many]
        parts += [f"{shown.format(many)}\n\n{_table(found, _share)}", f"{auc.format(many)}\n\n{_table(found, _auc)}"]
    return parts


def tables(rows: list[Figure], majority: float) -> str:
    """The tables as Markdown, and a sentence about accuracy."""
    parts = _both(rows, f"**A{_SHOWN}", f"**A{_AUC}")
    right = [float(row["accuracy_mean"] or 0) for row in rows if float(row["shown"] or 0) >= 0.5]
    parts.append(_ACCURACY.format(min(right), max(right), majority))
    return "\n\n".join(parts)


_SUMMED = "**Two tellers, a"
_RULED = "**Two tellers and declared directions, a"
_SHOWN = "sking about {} features: in how many studies was the model shown to beat a guess?**"
_AUC = "sking about {} features: how well does it rank people?** ROC AUC; in brackets, the middle nine tenths."
_ACCURACY = (
    "Accuracy says less here. Where at least half of the studies were shown to beat a guess, their answers were right\n"
    "in {:.1%} to {:.1%} of cases on average. Always answering \"no\" is right in {:.1%}, and finds nobody."
)


def _share(row: Figure) -> str:
    share = float(row["shown"] or 0)
    return f"{share:.0%}, {'hopeless' if share < HOPELESS else 'works' if share >= WORKS else 'a toss-up'}"


def _auc(row: Figure) -> str:
    return f"{row['auc_mean']:.2f} ({row['auc_low']:.2f} to {row['auc_high']:.2f})"


def _table(rows: list[Figure], cell: Callable[[Figure], str]) -> str:
    found = {(int(row["people"] or 0), row["epsilon"]): cell(row) for row in rows}
    sizes = sorted({size for size, _ in found})
    heads, last = [f"epsilon {epsilon:g}" for epsilon in EPSILONS], list[str]()
    if cell is _auc:
        heads, last = [*heads, "the rule, which asks nobody"], [f"{rows[0]['rule_auc']:.2f}"]
    lines = ["| people who take part | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    lines += [
        f"| {size:,} | " + " | ".join([*(found[size, epsilon] for epsilon in EPSILONS), *last]) + " |"
        for size in sizes
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="The census study by class size and epsilon.")
    parser.add_argument("--data", type=Path, help="Adult as CSV; else the wheel of the census example.")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--design", choices=MARKS, default="tables", help="sums, rule: of exact sums with two tellers.")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--peers", type=int, nargs="+", help="These sizes alone.")
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--features", nargs="+", choices=FEATURES, default=[*FEATURES])
    options = parser.parse_args()
    asked_as = {"tables": asking, "sums": summing, "rule": ruling}[options.design]
    sizes = SIZES if options.design == "tables" else SUMMED_SIZES
    cells = list(product(options.features, options.peers or sizes, options.epsilon))
    if options.page and len(cells) < len(FEATURES) * len(sizes) * len(EPSILONS):
        parser.error("--page: a page has all cells")
    try:
        study, everybody = PROTOCOLS.load_proposal(STUDY), load(options.data)
    except DataUnavailable as missing:
        raise SystemExit(str(missing)) from None
    taking_part, kept = split(everybody, len(everybody) - SCORED, SCORED, SEED)
    people, scored = people_from_rows(study, taking_part), people_from_rows(study, kept)
    rows, rules = [], {many: rule_auc(ruling(study, FEATURES[many], 1.0).features, scored) for many in options.features}
    for many, size, epsilon in cells:
        asked, seed = asked_as(study, FEATURES[many], epsilon), [SEED, size, int(epsilon * 1000)]
        found = measure(asked, people, scored, size, options.trials, seed)
        rows.append({"features": many, "people": size, "epsilon": epsilon, **found, "rule_auc": rules[many]})
    share = float(scored.labels.mean())
    name = "class_sizes" if options.design == "tables" else f"class_sizes_{options.design}"
    publish(name, rows, {"scored": len(scored), "positive": round(share, 3)})
    if options.page:
        measured = tables(rows, max(share, 1 - share))
        if options.design != "tables":
            measured = sum_tables(rows, options.design == "rule")
        begin, end = MARKS[options.design]
        before, _, rest = options.page.read_text("utf-8").partition(begin)
        _, _, after = rest.partition(end)
        options.page.write_text(f"{before}{begin}\n\n{measured}\n\n{end}{after}", "utf-8")


if __name__ == "__main__":
    main()
