"""Staff hear before they publish that new members refuse a study for its cost, and the odds that it allows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attrs import evolve
from typer.testing import CliRunner

from aggregator.desk.form import BEGINNING
from aggregator.lab.simulation.simulate import NO_KEYS
from aggregator.study.handout import limits_to_change, mail
from anon.kit.terminal.wiring import Wiring
from anon.ldp import nano
from anon.protocols.charge import LOCAL
from anon.protocols.cost_words import in_budget
from anon.protocols.registry import charge_of
from anon.protocols.resolve import resolve
from anon.study import Manifest
from anonml import application
from peer.rules.consent import Policy, objections
from peer.rules.ledger import Ledger
from peer.rules.limits import BudgetLimit, with_limit
from tests.anon.protocols.test_sum_spare import spared
from tests.support.protocols import parse_proposal
from tests.support.sums import (
    GRADIENT,
    MARGINALS,
    MOMENTS,
    RULE,
    SLEEP,
    TABLES,
    manifest_of,
    many,
    sum_study,
)
from tests.support.world import study_text


def sums(epsilon: float) -> Manifest:
    return manifest_of(f'kind = "tables-sum"\nepsilon = {epsilon}')


def of_records() -> Manifest:
    return manifest_of('kind = "moments"\nepsilon = 1.0', keys=many())


def local(epsilon: float) -> Manifest:
    text = study_text().replace("epsilon = 2.0", f"epsilon = {epsilon}")
    return resolve(parse_proposal(text), NO_KEYS, 0, lambda below: 0)


def refused(study: Manifest, policy: Policy) -> list[str]:
    """The objections that a limit makes: loopback studies of any window pass."""
    asked = evolve(study, cohort=evolve(study.cohort, minimum=20))
    ledger = Ledger(policy.lifetime, others=policy.lifetimes())
    return [str(one) for one in objections(asked, policy, ledger, study.timetable.enrol_closes - 1) if one.next_step]


def obeying(study: Manifest, said: str) -> Policy:
    """The limits of an owner who typed the command."""
    typed = {name: nano(value) for name, value in re.findall(r"--(per-study|lifetime) ([\d.]*\d)", said)}
    budget, policy = charge_of(study).budget, Policy()
    known = policy.limit(budget)
    whole, most = typed.get("lifetime", known.lifetime), typed.get("per-study", known.per_study)
    if budget == LOCAL:
        return evolve(policy, lifetime=whole, max_epsilon=most)
    assert f"--measure {budget.measure}" in said
    raised = [
        to if to == before else in_budget(budget, before, to)
        for before, to in ((known.lifetime, whole), (known.per_study, most))
    ]
    return evolve(policy, limits=with_limit(policy.limits, BudgetLimit(budget.measure, budget.unit, *raised)))


@pytest.mark.parametrize(
    ("study", "options"),
    [
        (sums(1), ""), (sums(2), ""), (sums(3), " --measure zcdp --per-study 3.16`"),
        (sums(4), " --measure zcdp --per-study 4.17 --lifetime 4.17`"),
        (of_records(), " --measure zcdp --unit record --per-study "),
        (local(5), ""), (local(5.1), " --per-study 5.1`"), (local(12), " --per-study 12 --lifetime 12`"),
    ],
)  # fmt: skip
def test_a_study_that_new_members_refuse_for_its_cost_says_what_they_type(study: Manifest, options: str) -> None:
    said = limits_to_change(evolve(study, cohort=evolve(study.cohort, minimum=20)))
    assert bool(refused(study, Policy())) is bool(options) is bool(said)
    if options:
        assert f"`anonml peer budget{options}" in said and not refused(study, obeying(study, said))
        assert said in mail(evolve(study, cohort=evolve(study.cohort, minimum=20)))


@pytest.mark.parametrize("design", [TABLES, MARGINALS, MOMENTS, SLEEP, RULE, GRADIENT])
@pytest.mark.parametrize("spare", [False, True])
def test_new_members_need_type_nothing_for_the_epsilon_that_the_form_proposes(design: str, spare: bool) -> None:
    proposed = design.replace("epsilon = 1.0", f"epsilon = {BEGINNING['epsilon']}")
    study = spared(proposed) if spare else manifest_of(proposed)
    assert "epsilon = 2" in proposed
    assert not limits_to_change(evolve(study, cohort=evolve(study.cohort, minimum=20)))


def test_lint_says_it_with_the_factor_of_odds(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    for epsilon, factor, told in ((1, "2.72", False), (4, "54.6", True)):
        file.write_text(sum_study(f'kind = "tables-sum"\nepsilon = {epsilon}', minimum=20))
        done = CliRunner().invoke(application("study"), ["lint", str(file)], obj=Wiring(), env={"COLUMNS": "999"})
        assert ("begins with limits of epsilon 2.16 for one study and 3.93 for all studies" in done.output) is told
        assert f"the chances of whatever is published move by at most a factor of {factor}, and" in done.output
