"""`anonml simulate`: predict a study's result on data you have, without network or cryptography."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer
from attrs import evolve
from rich.progress import Progress
from rich.table import Table

from aggregator.compute import HELP, Compute
from aggregator.lab.classes import ClassStudies, simulate_classes
from aggregator.lab.simulation.inference import WARNING, InferredStudy, infer_study, people_of
from aggregator.lab.simulation.parties import Parties, has_parties, parties_from_csv
from aggregator.lab.simulation.people import People, people_from_csv
from aggregator.lab.simulation.simulate import HELD_OUT, SimulationResult, simulate
from aggregator.lab.simulation.trusted_party import DELTA
from aggregator.protocols.installed import PROTOCOLS
from anon.errors import InvalidValue
from anon.kit.terminal.options import JsonOption, print_json
from anon.kit.terminal.printing import Terminal
from anon.protocols.histogram.sections import OnePacket
from anon.protocols.sum.sections import ExactSums
from anon.study import Proposal
from anon.study.given import NONE_GIVEN, read_given
from anon.text.foreign import shown

app = typer.Typer(add_completion=False, help="Predict a study's result on data you have, without any network.")


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="CSV (or .csv.gz) of the study's table: the people who would be peers.")],
    study: Annotated[
        Path | None, typer.Argument(help="A study file whose queries read one table; else one is inferred.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Without a study file: the column to learn.")] = None,
    positive: Annotated[
        list[str] | None, typer.Option(help="Its values that count as positive, or a bound such as '>=100'.")
    ] = None,
    classes: Annotated[
        bool, typer.Option("--classes", help="A study for each value of the label; they divide the people.")
    ] = False,
    test: Annotated[Path | None, typer.Option(help="CSV of people to score on; else some are held out.")] = None,
    test_share: Annotated[
        float, typer.Option(min=0.01, max=0.9, help="How many are held out, the same in all trials; --seed draws them.")
    ] = HELD_OUT,
    trials: Annotated[int, typer.Option(min=1, max=10_000, help="How many times the study runs.")] = 50,
    peers: Annotated[
        int | None,
        typer.Option(min=2, help="Peers per trial, drawn anew, nobody twice (more: with replacement); else all."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The study's one epsilon; required without a study file.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that tells people apart, when they have several rows; or parties.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="For repeating a run exactly.")] = None,
    shuffle_labels: Annotated[
        bool, typer.Option(help="Break the link to the label: the AUC must fall to 0.5.")
    ] = False,
    compute: Annotated[str, typer.Option(help=HELP)] = "1",
    as_json: JsonOption = False,
) -> None:
    """Run the study many times on your data and print means with standard errors, beside what no privacy would give."""
    place = Compute.of(compute)
    seed = secrets.randbits(63) if seed is None else seed
    if classes:
        if study or label is None or positive or epsilon is None or person or shuffle_labels:
            raise typer.BadParameter("name --label and --epsilon, and no study file", param_hint="--classes")
        typer.echo(WARNING, err=True)
        return _show_classes(
            simulate_classes(
                data, label, epsilon, trials, seed, test=test, peers=peers, held_out=test_share, compute=place
            ),
            as_json,
        )
    if study is None:
        inferred = _inferred(data, label, positive, epsilon, 0.0 if test else test_share, seed)
        proposal, given = inferred.proposal, NONE_GIVEN
        members: People | Parties = inferred.people
        scored: People | Parties | None = people_of(proposal, test, inferred.bound) if test else inferred.held_out
    else:
        proposal = _with_epsilon(PROTOCOLS.load_proposal(study), epsilon)
        given = read_given(proposal.given, study.parent)
        read = parties_from_csv if has_parties(proposal) else people_from_csv
        members = read(proposal, data, person)
        scored = read(proposal, test, person) if test else None
    people, word = (members.people, "records") if isinstance(members, Parties) else (members, "people")
    if people.alike:
        typer.echo(
            f"caution: all {len(people)} {word} count as {people.alike}, so that nothing can be learned. Compare the "
            "values that label.query gives on this file with label.positive and label.negative.",
            err=True,
        )
    with Progress(console=Terminal(stderr=True), transient=True) as progress:
        task = progress.add_task("trials", total=trials)
        result = simulate(
            proposal,
            members,
            trials,
            seed,
            scored,
            peers=peers,
            shuffle_labels=shuffle_labels,
            held_out=test_share,
            given=given,
            progress=lambda done: progress.update(task, completed=done),
            compute=place,
        )
    _cautions(result)
    print_json(result.figures()) if as_json else _show(result)


def _show_classes(studies: ClassStudies, as_json: bool) -> None:
    if as_json:
        return print_json(studies.figures())
    table = Table("value, against the rest", "AUC", "standard error", "no privacy: AUC", "shown")
    for value, result in studies.results.items():
        shown_in = f"{result.shown:.0%}" if result.shown is not None else ""
        table.add_row(
            value, f"{result.auc_mean:.4f}", f"{result.auc_se:.4f}", f"{result.auc_ceiling_binned:.4f}", shown_in
        )
    console, first = Terminal(), next(iter(studies.results.values()))
    console.print(table)
    console.print(
        f"the values' mean AUC: {studies.auc_macro:.4f} ± {studies.auc_macro_se:.4f}\n"
        f"{len(studies.results)} studies of {first.peers} peers each, of whom each takes part in one\n{_covered(first)}"
    )
    return None


def _inferred(
    data: Path, label: str | None, positive: list[str] | None, epsilon: float | None, held_out: float, seed: int
) -> InferredStudy:
    if label is None or not positive or epsilon is None:
        raise typer.BadParameter(
            "without a study file, name --label, --positive and --epsilon", param_hint="STUDY"
        )
    try:
        inferred = infer_study(data, label, positive, epsilon, held_out, seed)
    except InvalidValue as fault:
        raise typer.BadParameter(str(fault), param_hint="--epsilon") from None
    for line in (WARNING, *inferred.notes):
        typer.echo(shown(line), err=True)
    return inferred


def _with_epsilon(proposal: Proposal, epsilon: float | None) -> Proposal:
    if epsilon is None:
        return proposal
    if not isinstance(proposal.design, OnePacket | ExactSums):
        raise typer.BadParameter(
            "this design has more than one epsilon; edit the study file", param_hint="--epsilon"
        )
    try:
        return evolve(proposal, design=evolve(proposal.design, epsilon=epsilon))
    except InvalidValue as fault:
        raise typer.BadParameter(str(fault), param_hint="--epsilon") from None


def _cautions(result: SimulationResult) -> None:
    for name in result.leaks:
        typer.echo(
            shown(
                f"caution: {name} alone tells the label. Is it the label in other words, or known only afterwards? The "
                "figures without privacy leave it out."
            ),
            err=True,
        )


def _tested(result: SimulationResult) -> str:
    """The test of each study against noise, in lines."""
    spread = f"one study's AUC spreads by {result.spread:.3f} (standard deviation) around the mean\n"
    if result.shown is None or result.chance is None:
        return f"this design has no test of its own against a guess, whose AUC is 0.5\n{spread}"
    times = f"{round(result.shown * result.trials)} of {result.trials} studies; middle p-value {result.chance:.2g}"
    return f"shown to beat a guess in {times}\n{spread}"


def _show(result: SimulationResult) -> None:
    table = Table("", "mean", "standard error")
    table.add_row("AUC", f"{result.auc_mean:.4f}", f"{result.auc_se:.4f}")
    table.add_row("F1", f"{result.f1_mean:.4f}", f"{result.f1_se:.4f}")
    table.add_row("accuracy", f"{result.accuracy_mean:.4f}", f"{result.accuracy_se:.4f}")
    table.add_row("accuracy of the majority's answer for everybody", f"{result.majority_rate:.4f}", "")
    table.add_row("calibration error", f"{result.ece_mean:.4f}", "")
    if result.accuracy_alone is not None:
        table.add_row("one party alone, without privacy: accuracy", f"{result.accuracy_alone:.4f}", "")
        table.add_row("one party alone, without privacy: AUC", f"{result.auc_alone:.4f}", "")
    if result.rule_auc is not None:
        table.add_row("what you expect, asking nobody: AUC", f"{result.rule_auc:.4f}", "")
    if result.auc_trusted_party is not None:
        told = f"a trusted party, noise of the same epsilon (delta {DELTA:e}): AUC"
        table.add_row(told, f"{result.auc_trusted_party:.4f}", "")
    table.add_row("no privacy, same bins or columns: AUC", f"{result.auc_ceiling_binned:.4f}", "")
    table.add_row("no privacy, raw features: AUC", f"{result.auc_ceiling_raw:.4f}", "")
    console = Terminal()
    console.print(table)
    console.print(
        f"{_tested(result)}{result.peers} peers a study, "
        f"{result.cost or f'record-level epsilon {result.epsilon_record:g}'}; "
        f"all figures are for {result.scored} {'other people' if result.auc_alone is None else 'records of others'}\n"
        f"{_covered(result)}"
    )


def _covered(result: SimulationResult) -> str:
    """The draw of peers, and the chance that the standard errors leave out, in lines."""
    return (
        f"peers: {result.draw or 'all of them take part in each'}\n"
        f"standard errors: of {'the draw of peers and ' if result.draw else ''}the study's own chance. All studies are "
        "scored on the same, so that other people would move the figures further."
    )
