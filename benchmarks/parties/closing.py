"""All protocols on the same census records at epsilon 1, for the last table of docs/parties.md.

    python -m benchmarks.parties.closing --data FOLDER [--trials 5]

FOLDER holds adult_train and adult_test (.csv.gz). All 32,561 records of the training file: one each of so many people,
or divided among 100 parties (10 for `oblivious`) in the file's order. `anonml simulate`'s code runs each study. Rows of
`marginals` and `trees` are those of `benchmarks.parties.rows`, which runs first, by logistic regression. Figures are
kept in benchmarks/out, and their part of the page is written anew.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import frozen

from aggregator.lab.simulation.evaluation import model_scores, probabilities
from aggregator.lab.simulation.parties import Parties, parties_from_rows
from aggregator.lab.simulation.people import People, people_from_csv, rows_of_csv
from aggregator.lab.simulation.run import Plan
from aggregator.lab.simulation.simulate import NO_KEYS, learn_once, simulate
from anon.protocols.models.tables import Model
from anon.protocols.resolve import resolve
from anon.sharing.drafts import drafted
from anon.study.proposal import Proposal
from benchmarks.data import data_folder
from benchmarks.figures import OUT, Figure, publish
from benchmarks.paper.findings import Findings, number, table
from benchmarks.paper.sections import section_of, tables_of
from benchmarks.parties.goals import brief
from benchmarks.parties.noise import Array
from examples.protocols import PROTOCOLS

FOLDER = Path(__file__).resolve().parents[2]
CENSUS, PAGE = FOLDER / "examples" / "census", FOLDER / "docs" / "parties.md"
SEED, PARTIES, FEW = 20261129, 100, 10
PARTS = ("train", "test")
HEAD = """\
## All protocols on the same records

Each at epsilon 1, with all 32,561 training records of Adult: one record of each person, or those of 100 parties with
325 records each (`oblivious`: 10 with 3,256). Attributes are those of examples/census: 7 numbers of parties, 11
attributes for `histogram` and `tables-sum`, 12 for rows. A record is replaced. Two tellers add noise, half of the
members are honest under masks, and delta is 1e-6 where it is not zero. Error on the test file, and its standard error
over {trials} trials of noise, of rows over trials of the division. Trials are few: a difference below twice the
standard error says nothing. `gradient` and `transfer` stand in the tables above. The commoner label: {majority}. One
party's own 325 records, nothing shared: {alone}. Parties that are alike gain little by a mean of their models; more
records behind one model help.

`{command}`
"""
KEPT = OUT / "closing.json"
COMMAND = "python -m benchmarks.parties.closing --data FOLDER"


@frozen
class Choice:
    """A design with its lines of the study file, and what stands beside its error."""

    name: str
    design: str
    when: str
    rests: str
    failure: str
    file: str = "parties"
    parties: int = PARTIES


CHOICES = (
    Choice("`histogram`", 'kind = "one-packet"\nepsilon = 1.0', "one record each, thousands of people, nobody to trust",
           "nobody", "with too few people no model beats a guess, and the report says so", "study"),
    Choice("`sum`, `tables-sum`", 'kind = "tables-sum"\nepsilon = 1.0', "one question is known, and one record each",
           "one honest teller", "all tellers together see every answer; a lost teller ends the round", "sum"),
    Choice("`sum`, `moments`", 'kind = "moments"\nepsilon = 1.0', "columns of numbers, one message",
           "one honest teller", "the same"),
    Choice("`sum`, `averaging`", 'kind = "averaging"\nepsilon = 1.0\nstrength = 0.004', "each party fits on its own",
           "one honest teller", "the same; parties of few records cost all of them accuracy"),
    Choice("`masks`", 'kind = "masked-averaging"\nepsilon = 1.0\nstrength = 0.004', "the same without tellers",
           "half of the members, and an aggregator that invents none", "too few come to open the sum: no result"),
    Choice("`oblivious`", 'kind = "oblivious-averaging"\nepsilon = 1.0\nstrength = 0.004', "three to ten large parties",
           "parties and aggregator that keep to the protocol", "one party away in any of seven rounds: no result",
           "parties", FEW),
    Choice("`groups`", 'kind = "group-averaging"\nepsilon = 1.0\nstrength = 0.004\naggregations = 2',
           "parties come and go, and nobody runs a teller", "one honest receiver in each group",
           "a group's model is missing, or a liar turns it"),
    Choice("`sum`, `marginals`", "", "the questions come later, and rows are to be passed on", "one honest teller",
           "rows of few people train worse than the commoner label does"),
    Choice("`trees`", "", "the same, and nobody is to be trusted", "nobody",
           "most trees say the commoner label, and so do all rows"),
)  # fmt: skip


def study_text(choice: Choice) -> str:
    """The study file of a choice."""
    text = (CENSUS / f"{choice.file}.toml").read_text("utf-8")
    text = re.sub(r"\[design\].*?(?=\n\[)", f"[design]\n{choice.design}\n", text, flags=re.DOTALL)
    if "[[tellers]]" in text and not choice.name.startswith("`sum`"):
        text = text.partition("[[tellers]]")[0]
    if choice.file != "parties":
        return re.sub(r"^maximum = .*$", "maximum = 40000", text, flags=re.MULTILINE)
    each = 32_561 // choice.parties
    text = text.replace("most_records = 60", f"most_records = {each + 1}")
    text = text.replace("least_records = 60", f"least_records = {each}")
    return text.replace("maximum = 500", f"maximum = {choice.parties}")


def measured(folder: Path, trials: int) -> Iterator[Figure]:
    """A row for each simulated choice."""
    held = dict[tuple[str, int], list[People | Parties]]()
    for choice in CHOICES:
        if not choice.design:
            continue
        study, files = PROTOCOLS.proposal(study_text(choice)), (folder / f"adult_{part}.csv.gz" for part in PARTS)
        same = choice.file, choice.parties
        if same not in held:
            held[same] = [_people(study, file, choice) for file in files]
        train, test = held[same]
        about: Figure = {"name": choice.name, "trials": trials}
        if isinstance(train, People) and isinstance(test, People):
            right = half_right(study, train, test, trials)
            error, spread, alone = 1 - right.mean(), right.std(ddof=1) / trials**0.5, None
            majority = min(test.labels.mean(), 1 - test.labels.mean())
        else:
            found = simulate(study, train, trials, SEED, test, ceilings=choice.design.startswith('kind = "averaging"'))
            error, spread, alone = 1 - found.accuracy_mean, found.accuracy_se, found.accuracy_alone
            majority = 1 - found.majority_rate
        yield {**about, "error": round(float(error), 5), "se": round(float(spread), 5),
               "majority": round(float(majority), 5), "alone": alone and round(1 - alone, 5)}  # fmt: skip
        print(choice.name, error, file=sys.stderr, flush=True)


def half_right(study: Proposal, people: People, scored: People, trials: int) -> Array:
    """The accuracy of so many studies' models of tables, which say yes from a probability of 1/2 on.

    A study's own threshold is lower, as it is to find more of the few.
    """
    generator, found = np.random.default_rng(SEED), []
    plan = Plan.of(resolve(drafted(study), NO_KEYS, 0, lambda below: int(generator.integers(below))))
    for _ in range(trials):
        model = learn_once(plan, people, generator).model
        assert isinstance(model, Model)
        found.append(np.mean((probabilities(model, model_scores(model, scored)) >= 0.5) == (scored.labels == 1)))
    return np.array(found)


def _people(study: Proposal, file: Path, choice: Choice) -> People | Parties:
    if study.many is None:
        return people_from_csv(study, file)
    rows = list(rows_of_csv(file))
    many = max(1, round(len(rows) * choice.parties / 32_561))
    held = ({**row, "id": place, "office": place % many} for place, row in enumerate(rows))
    return parties_from_rows(study, held, "office")


def section(kept: Findings, old: str) -> str:
    """The part of the page. Lines of rows that are not kept are those of the old page."""
    rows = {str(row["name"]): row for row in kept.rows("closing")}
    made = {
        f"`sum`, `{way}`" if way == "marginals" else f"`{way}`": [
            number(row, "error")
            for row in kept.rows("beside", part="rows", way=way, epsilon=1.0, task="logistic")
        ]
        for way in ("marginals", "trees")
    }
    first = next(iter(rows.values()))
    alone = next(row for row in rows.values() if row["alone"] is not None)
    head = HEAD.format(
        trials=int(number(first, "trials")), majority=brief(number(first, "majority"), 3),
        alone=brief(number(alone, "alone"), 3), command=COMMAND,
    )  # fmt: skip
    lines, told = [], tables_of(section_of(old, HEAD.splitlines()[0]))
    before = {line[0]: line for line in (told[0] if told else ())}
    for choice in CHOICES:
        if choice.name not in rows and not made[choice.name]:
            lines += [before[choice.name]] if choice.name in before else []
            continue
        if choice.name in rows:
            error, spread = number(rows[choice.name], "error"), number(rows[choice.name], "se")
        else:
            errors = made[choice.name]
            error, spread = float(np.mean(errors)), float(np.std(errors, ddof=1) / len(errors) ** 0.5)
        cell = f"{brief(error, 3)} ({brief(spread, 3)})"
        lines.append([choice.name, cell, choice.when, choice.rests, choice.failure])
    return f"{head}\n{table(['protocol', 'error', 'choose it when', 'it rests on', 'a failure looks like'], lines)}\n"


def kept_rows() -> Findings:
    """The figures of this command, and the rows that it reads."""
    files: Mapping[str, Path] = {"closing": KEPT, "beside": OUT / "rows-beside.json"}
    return Findings({
        name: json.loads(file.read_text("utf-8"))["rows"] for name, file in files.items() if file.exists()
    })  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, keep, and write the part of the page."""
    parser = argparse.ArgumentParser(description="All protocols on the same census records.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args(arguments)
    publish("closing", list(measured(options.data, options.trials)), {})
    page = PAGE.read_text("utf-8")
    before = page.partition(f"\n{HEAD.splitlines()[0]}\n")[0]
    PAGE.write_text(f"{before}\n{section(kept_rows(), page)}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
