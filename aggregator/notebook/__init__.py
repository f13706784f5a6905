"""A whole study from Python, with results that notebooks show as tables and charts. It works in plain scripts as well.

    from aggregator.notebook import Study
    study = Study("study.toml")      # shows what it asks and costs, or every fault
    people = study.made_up(2000)     # or study.read("last-year.csv")
    people                           # shows the first of them
    result = study.run(people)       # perturbs, learns and scores as the protocol would; no network, no token
    result.report                    # the report that the study would publish, with ROC curve and subgroups
    result.model                     # the model, which predicts
    study.simulate(people)           # the same many times: what to expect, with standard errors

Everything runs on made-up, public or last year's data that staff hold; no peer's data are ever here.
"""

from __future__ import annotations

import base64
import random
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from attrs import evolve, field, frozen
from markupsafe import Markup, escape

from aggregator.lab.simulation.people import People, people_from_csv, people_from_rows
from aggregator.lab.simulation.rule import evaluated
from aggregator.lab.simulation.simulate import NO_KEYS, SimulationResult, run_once, simulate, table_scores
from aggregator.lab.synthetic import people as synthetic
from aggregator.protocols.contract import LearningResult
from aggregator.protocols.installed import PROTOCOLS
from aggregator.report.charts import Interval, intervals
from aggregator.report.evaluation import TestEvaluation
from aggregator.report.page import render
from aggregator.rules.counters import Traffic
from aggregator.study.publish import lint_queries
from anon.errors import Malformed
from anon.ldp import format_epsilon
from anon.protocols.cost_words import exact_cost
from anon.protocols.models.published import PublishedModel
from anon.protocols.registry import charge_of, protocol_of
from anon.protocols.resolve import resolve
from anon.sharing.drafts import drafted
from anon.storage.private_files import write_private
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal

HELD_OUT = 0.3


@frozen(eq=False)
class Table:
    """A table that a notebook shows."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def _repr_html_(self) -> str:
        head = Markup("").join(Markup("<th>{}</th>").format(name) for name in self.header)
        cells = (Markup("").join(Markup("<td>{}</td>").format(cell) for cell in row) for row in self.rows)
        body = Markup("").join(Markup("<tr>{}</tr>").format(row) for row in cells)
        return str(Markup("<table><caption>{}</caption><tr>{}</tr>{}</table>").format(self.caption, head, body))

    def __str__(self) -> str:
        """The same as lines of text."""
        return "\n".join([self.caption, *("  ".join(row) for row in (self.header, *self.rows))])


@frozen(eq=False)
class Sample:
    """People that the study can be tried on."""

    people: People

    def __len__(self) -> int:
        return len(self.people)

    def shuffled(self, seed: int = 1) -> Sample:
        """The same people with labels that belong to others: nothing can be learned from them."""
        generator = np.random.default_rng(seed)
        return Sample(People(self.people.columns, generator.permutation(self.people.labels)))

    def _repr_html_(self) -> str:
        names = tuple(self.people.columns)
        shown = [
            (*(str(self.people.columns[name].values[self.people.columns[name].index[row]]) for name in names),
             "yes" if self.people.labels[row] else "no")
            for row in range(min(len(self), 8))
        ]
        return Table(f"{len(self)} people", (*names, "label"), tuple(shown))._repr_html_()


@frozen(eq=False)
class Report:
    """The report as one self-contained page."""

    html: str = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write it for its owner alone; as PDF if the name ends in .pdf (the `pdf` extra, or Chromium)."""
        from aggregator.report.pdf import to_pdf

        target = Path(path)
        write_private(target, to_pdf(self.html) if target.suffix == ".pdf" else self.html.encode())

    def _repr_html_(self) -> str:
        # a document of its own, so that its style and the notebook's do not meet; it holds no script
        page = base64.b64encode(self.html.encode()).decode()
        source = escape(f"data:text/html;charset=utf-8;base64,{page}")
        return f'<iframe src="{source}" sandbox width="100%" height="600" title="report"></iframe>'


@frozen(eq=False, repr=False)
class Result:
    """One run of a study: the model, what stands behind it, and how it does on people who took no part."""

    manifest: Manifest
    learned: LearningResult
    evaluation: TestEvaluation
    report: Report
    scores: tuple[Interval, ...]
    """The AUC of each table, with its 95 % interval."""

    @property
    def model(self) -> PublishedModel:
        """The model."""
        return cast(PublishedModel, self.learned.model)  # the lab runs no study without one

    def __repr__(self) -> str:
        """The figures in two lines."""
        shown = "was shown" if self.model.shown else "was not shown"
        return f"{self._caption()}\nthe model {shown} to beat a guess; see .report, .model, .evaluation, .scores"

    def _caption(self) -> str:
        evaluation = self.evaluation
        caption = f"ROC AUC {evaluation.auc:.3f} ± {evaluation.auc_error:.3f} on {evaluation.people} people "
        return f"{caption}who took no part; record-level epsilon {format_epsilon(self.manifest.epsilon)}"

    def _repr_html_(self) -> str:
        caption = self._caption()
        drawing = intervals(self.scores, "AUC of each table with its 95 % interval", 0.5) if self.scores else Markup("")
        return str(Markup("<p>{}</p>{}").format(caption, drawing))


@frozen(eq=False, repr=False)
class Expectation:
    """The figures of many runs."""

    result: SimulationResult

    def __repr__(self) -> str:
        """The table as lines of text."""
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def _table(self) -> Table:
        result = self.result
        rows = (
            ("ROC AUC", f"{result.auc_mean:.4f}", f"{result.auc_se:.4f}"),
            ("F1", f"{result.f1_mean:.4f}", f"{result.f1_se:.4f}"),
            ("accuracy", f"{result.accuracy_mean:.4f}", f"{result.accuracy_se:.4f}"),
            ("accuracy of the majority's answer for everybody", f"{result.majority_rate:.4f}", ""),
            *self._trusted_party(),
            ("ROC AUC without privacy, same bins or columns", f"{result.auc_ceiling_binned:.4f}", ""),
            ("ROC AUC without privacy, raw features", f"{result.auc_ceiling_raw:.4f}", ""),
        )
        caption = f"{result.trials} runs with {result.peers} peers, "
        caption += result.cost or f"record-level epsilon {result.epsilon_record:g}"
        if result.shown is not None:
            caption += f"; shown to beat a guess in {round(result.shown * result.trials)} of them"
        return Table(caption, ("", "mean", "standard error"), rows)

    def _trusted_party(self) -> tuple[tuple[str, str, str], ...]:
        found = self.result.auc_trusted_party
        return () if found is None else (("ROC AUC of a trusted party, same epsilon", f"{found:.4f}", ""),)


class Study:
    """A study file, checked. `file`: a path, or the text of one. Raises `Malformed` with every fault by its key.

    >>> from importlib.resources import files
    >>> from anonml import Study
    >>> study = Study(files("examples.census") / "study.toml")
    >>> print(study.asks.caption)
    Who earns more than 50,000 dollars?: record-level epsilon 2, 1 packet each
    >>> len(study.asks.rows), study.with_design(epsilon=1.0).manifest.epsilon
    (13, 1000000000)
    """

    def __init__(self, file: str | Path) -> None:
        text = isinstance(file, str) and "\n" in file
        self.proposal: Proposal = (
            PROTOCOLS.proposal(str(file)) if text else PROTOCOLS.load_proposal(Path(file))
        )
        lint_queries(self.proposal)
        self.manifest: Manifest = _resolved(self.proposal)

    def with_design(self, **changes: Any) -> Study:
        """The same study with other values in `[design]`, such as `epsilon=1.0`."""
        other = object.__new__(Study)
        other.proposal = evolve(self.proposal, design=evolve(self.proposal.design, **changes))
        other.manifest = _resolved(other.proposal)
        return other

    @property
    def asks(self) -> Table:
        """Every survey with its mechanism and cost."""
        protocol = protocol_of(self.manifest)
        rows = [
            (protocol.title(self.manifest, survey), survey.mechanism, str(survey.m), format_epsilon(survey.epsilon))
            for survey in self.manifest.surveys
        ]
        caption = f"{self.manifest.title}: {exact_cost(self.manifest)}"
        caption += f", {self.manifest.packets} packet{'s' * (self.manifest.packets > 1)} each"
        return Table(caption, ("asks", "mechanism", "m", charge_of(self.manifest).budget.symbol), tuple(rows))

    def made_up(self, count: int, seed: int = 1) -> Sample:
        """So many made-up people of the declared ranges and categories."""
        header, body = synthetic(self.proposal, count, random.Random(seed))  # noqa: S311  (a trial, not a release)
        return self.of_rows([dict(zip(header, row, strict=True)) for row in body])

    def of_rows(self, rows: Sequence[Mapping[str, int | float | str | None]], person: str | None = None) -> Sample:
        """People from rows of the study's table; a data frame gives them as `frame.to_dict("records")`."""
        return Sample(people_from_rows(self.proposal, rows, person))

    def read(self, path: str | Path, person: str | None = None) -> Sample:
        """People from a CSV file of the study's table."""
        return Sample(people_from_csv(self.proposal, Path(path), person))

    def run(self, people: Sample, test: Sample | None = None, seed: int | None = None) -> Result:
        """One run with all of `people` as peers, or, without `test` people, with those who are not held out to score.

        Exactly what the protocol's mechanisms do to sums of reports; no network, no tokens. Deterministic in `seed`.
        """
        generator = np.random.default_rng(secrets.randbits(63) if seed is None else seed)
        peers, scored = (people.people, test.people) if test else _split(people.people, generator)
        if len(peers) < 2:
            raise Malformed("run: expected at least 2 people beside those held out")
        manifest = self.manifest
        learned = run_once(manifest, peers, generator)
        evaluation = evaluated(learned.model, manifest, scored, len(peers))
        each = [len(peers) * row.weight // slot.total for slot in manifest.slots for row in slot.rows]
        surveys = [row.survey for slot in manifest.slots for row in slot.rows]
        page = render(manifest, learned, Traffic(len(peers), {}, {}), dict(zip(surveys, each, strict=True)), evaluation)
        scores = tuple(Interval(*figure) for figure in table_scores(learned))
        return Result(manifest, learned, evaluation, Report(page), scores)

    def simulate(self, people: Sample, trials: int = 20, peers: int | None = None, seed: int = 1) -> Expectation:
        """Many runs: what to expect. All score the same held-out people, which no standard error covers."""
        return Expectation(simulate(self.proposal, people.people, trials, seed, peers=peers))

    def _repr_html_(self) -> str:
        return self.asks._repr_html_()


def _resolved(proposal: Proposal) -> Manifest:
    return resolve(drafted(proposal), NO_KEYS, int(time.time()), secrets.randbelow)


def _split(people: People, generator: np.random.Generator) -> tuple[People, People]:
    order = generator.permutation(len(people))
    held = max(1, int(HELD_OUT * len(people)))
    return people.take(order[held:]), people.take(order[:held])
