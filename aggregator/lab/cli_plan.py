"""`anonml study plan`: choose a design by simulation on made-up people, and write the study file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from attrs import asdict, astuple
from rich.progress import Progress
from rich.table import Table

from aggregator.compute import HELP, Compute
from aggregator.protocols.installed import PROTOCOLS
from anon.errors import InvalidValue, Malformed, Refused
from anon.kit.terminal.options import JsonOption, print_json
from anon.kit.terminal.printing import Terminal, styled

if TYPE_CHECKING:
    from aggregator.lab.planning.exact_sums import Beside
    from aggregator.lab.planning.outlook import BeliefOutlook, Outlook
    from aggregator.lab.planning.plan import DesignChoice
    from aggregator.lab.planning.population import Assumptions
    from aggregator.lab.planning.trials import Forecast
    from anon.study.manifest import Manifest
    from anon.study.proposal import Proposal

WHY = (
    "→ is the design of the verdict below and of --write: the highest expected AUC, or one with tables where that "
    "costs no more than 3 % of the gain over a guess. Choose another only if it was shown to beat a guess more often."
)
"""`aggregator.lab.planning.plan` has the rule."""
_HEADINGS = ("design", "expected AUC", "nine in ten studies", "± s.e.", "shown to beat a guess")
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
DATA = "Last year's people, one row each (CSV): they take the place of made-up ones."


def plan(
    file: Annotated[Path, typer.Argument(help="A study file; its design is replaced.")],
    epsilon: Annotated[float, typer.Option(help="The record-level epsilon that each peer will spend.")],
    cohort: Annotated[int | None, typer.Option(min=2, help="How many will take part; else the file's minimum.")] = None,
    write: Annotated[Path | None, typer.Option(help="Where to write the study file with the best design.")] = None,
    exact_sums: Annotated[bool, typer.Option(help="With --write: the exact sums beside it.")] = False,
    chart: Annotated[Path | None, typer.Option(help="Where to write an SVG chart over cohorts and epsilons.")] = None,
    populations: Annotated[int | None, typer.Option(min=1, max=200, help="Made-up populations to try on.")] = None,
    only: Annotated[bool, typer.Option(help="Only this cohort and epsilon; no table over others.")] = False,
    seed: Annotated[int, typer.Option(help="For another set of made-up populations.")] = 1,
    data: Annotated[Path | None, typer.Option(help=DATA)] = None,
    compute: Annotated[str, typer.Option(help=HELP)] = "1",
    as_json: JsonOption = False,
) -> None:
    """Compare designs on people made up from what the study declares (never on private data) and keep the best.

    Exact sums stand beside them, and on what each guarantee rests. Of a study whose members write to each other, or
    hold many records, it tells windows, bytes and work.

    With `--data` they are drawn from last year's file. The assumptions about made-up people are stated in
    aggregator/lab/planning/population.py; declare `shares` and `learning.base_rate` where they are public knowledge.
    """
    from aggregator.lab.planning.exact_sums import summed, without_tellers
    from aggregator.lab.planning.letters import with_rounds
    from aggregator.lab.planning.outlook import TOO_SMALL, outlook_of_belief, outlook_of_plan
    from aggregator.lab.planning.plan import choose_design, settled, survey_of_choices
    from aggregator.lab.planning.population import Assumptions
    from aggregator.lab.planning.study_file import chart as draw
    from aggregator.lab.planning.study_file import to_toml
    from aggregator.lab.planning.trials import plan_of
    from aggregator.lab.simulation.people import people_from_csv

    place, written = Compute.of(compute), PROTOCOLS.load_proposal(file)
    people = cohort or written.cohort.minimum
    if (manifest := with_rounds(written, epsilon)) is not None:
        return _show_rounds(manifest, people, as_json)
    proposal = without_tellers(written, epsilon)
    assumed = Assumptions(file=people_from_csv(written, data) if data else None)
    for target in (write, chart):
        if target is not None and target.exists():
            raise Refused(f"{target}: already exists; name another file")
    _demand_fits(write, chart, only, exact_sums)
    with Progress(console=Terminal(stderr=True), transient=True) as progress:
        cohorts, epsilons = ([], []) if only else ([max(people // 4, 2), people, 4 * people], list(EPSILONS))
        task = progress.add_task("designs", total=1 + len(cohorts) * len(epsilons))
        choice = choose_design(proposal, people, epsilon, seed, populations, assumed, place)
        if populations is not None:
            choice = settled(choice, proposal, seed, place, assumed)
        plan = plan_of(choice.proposal, seed)
        outlook = outlook_of_belief(plan.manifest, people) or outlook_of_plan(
            plan, proposal, people, epsilon, choice.best, seed, place, assumed
        )
        sums = _beside(written, choice, seed, place, assumed)
        progress.advance(task)
        around = survey_of_choices(
            proposal, cohorts, epsilons, seed, min(populations or 6, 6), lambda: progress.advance(task), place, assumed
        )
        around = tuple(
            choice if (cell.best.cohort, cell.best.epsilon) == (people, epsilon) else cell for cell in around
        )
    kept = summed(written, epsilon)[0] if exact_sums else choice.proposal
    if write is not None:
        write.write_text(to_toml(kept), "utf-8")
    if chart is not None:
        chart.write_text(draw(around), "utf-8")
    if as_json:
        print_json({
            "best": choice.best.figures(),
            "tried": [forecast.figures() for forecast in choice.forecasts],
            "around": [planned.best.figures() for planned in around],
            "outlook": outlook.figures(),
            "sum": {"refused": sums} if isinstance(sums, str) else sums.figures(),
        })
        return
    console = Terminal()
    _show_choice(console, choice, outlook, "made-up people" if data is None else "last year's people")
    for line in _of_rule(proposal, choice, data is None):
        console.print(line, soft_wrap=True)
    _show_beside(console, choice.best, sums, epsilon)
    console.print(_OPTIMISTIC, soft_wrap=True)
    if around:
        grid = Table("people", *(f"{budget:g}" for budget in EPSILONS))
        for size in cohorts:
            row = [choice_around.best for choice_around in around if choice_around.best.cohort == size]
            grid.add_row(f"{size:,}", *(_cell(cell, cell.shown < TOO_SMALL) for cell in row))
        console.print("The best design and its expected AUC for other groups and epsilons:")
        console.print(grid)
    if write is not None:
        _show_written(console, write, written, kept, "exact sums of tables" if exact_sums else choice.best.design)


def _show_written(console: Terminal, file: Path, written: Proposal, kept: Proposal, design: str) -> None:
    """The file, and what is other in it than in the one that was given."""
    from aggregator.lab.planning.study_file import changes

    console.print(f"{file} written with {design}; check it with `anonml study lint {file}`")
    for line in changes(written, kept):
        console.print(line, soft_wrap=True)
    if len(kept.tellers) > len(written.tellers):
        console.print("Its two [[tellers]] stand in: write names and addresses of those who will run them.")
    console.print("Comments are not kept, and lengths of time are written in seconds.")


def _demand_fits(write: Path | None, chart: Path | None, only: bool, exact_sums: bool) -> None:
    """Raises `Malformed` for options that ask for something without what it needs."""
    if exact_sums and write is None:
        raise Malformed("--exact-sums: says what to write; name a file with --write")
    if chart is not None and only:
        raise Malformed("--chart: a chart needs other cohorts and epsilons; leave out --only")


def _show_rounds(manifest: Manifest, people: int, as_json: bool) -> None:
    """The rounds of a study whose members write, or are parties, in place of a choice of designs."""
    from aggregator.lab.planning.letters import letters_plan, letters_words
    from aggregator.lab.simulation.parties import weight_noise

    people = min(max(people, manifest.cohort.minimum), manifest.cohort.maximum)
    planned = letters_plan(manifest, people)
    if as_json:
        rounds = [asdict(planned_round) for planned_round in planned]
        return print_json({"rounds": rounds, "weight_noise": weight_noise(manifest, people)})
    table = Table("round", "opens after, h", "lasts, h", "sends, kB", "fetches, kB", "computes, s", "on a phone, s")
    for planned_round in planned:
        name, *figures = astuple(planned_round)
        parts = zip(figures, (3600, 3600, 1000, 1000, 1000, 1000), strict=True)
        table.add_row(name, *(f"{figure / part:,.2f}" for figure, part in parts))
    console = Terminal()
    console.print(f"{people:,} members, what each of them does:")
    console.print(table)
    for line in letters_words(manifest, planned, people):
        console.print(line, soft_wrap=True)


_OPTIMISTIC = (
    "Made-up studies differ in how much there is to find, as real ones do: the interval says more than its middle. "
    "With last year's data as a CSV file, `--data FILE.csv` forecasts from it."
)


def _figures(forecast: Forecast) -> tuple[str, ...]:
    return f"{forecast.auc:.3f}", forecast.between, f"{forecast.auc_se:.3f}", f"{forecast.shown:.0%}"


def _beside(written: Proposal, choice: DesignChoice, seed: int, place: Compute, assumed: Assumptions) -> Beside | str:
    """Exact sums, or why this study cannot be one of them."""
    from aggregator.lab.planning.exact_sums import beside

    try:
        return beside(written, choice.proposal, choice.best.cohort, choice.best.epsilon, seed, place, assumed)
    except (Malformed, Refused) as fault:
        return str(fault)


def _of_rule(proposal: Proposal, choice: DesignChoice, made_up: bool) -> Iterator[str]:
    """Of a study that declares two directions: how far the rule's figures can be trusted, or why it has none."""
    from aggregator.lab.planning.candidates import DECLARED_RULE, ruled
    from aggregator.lab.planning.population import RIGHT

    if sum(bool(feature.expects) for feature in proposal.features) < 2:
        return
    if all(forecast.design != DECLARED_RULE for forecast in choice.forecasts):
        try:
            ruled(proposal, choice.best.epsilon)
        except InvalidValue as fault:
            yield f'The declared rule (asks = "rule"): not for this study as it stands. {fault}'
        return
    yield 'The declared rule (asks = "rule") publishes what you expect as a model, and answers correct it.'
    if made_up:
        yield (
            f"Its figures take each thing that you expect to be true with a chance of {RIGHT:.0%}. Leave out `expects` "
            "where you are less sure, and plan again."
        )


def _show_choice(console: Terminal, choice: DesignChoice, outlook: Outlook | BeliefOutlook, whose: str) -> None:
    """Every design that was tried, the best first, and the verdict on it."""
    table = Table(*_HEADINGS)
    for forecast in choice.forecasts:
        best = styled("[bold]→[/] {design}", design=forecast.design)
        table.add_row(best if forecast is choice.best else forecast.design, *_figures(forecast))
    heading = f"{choice.best.cohort:,} people, record-level epsilon {choice.best.epsilon:g}, {whose}:"
    console.print(heading)
    console.print(table)
    console.print(WHY)
    for line in outlook.sentences():
        console.print(line)


def _show_beside(console: Terminal, best: Forecast, sums: Beside | str, epsilon: float) -> None:
    """The protocol `sum` beside the best design of `histogram`, and what each promise rests on."""
    if isinstance(sums, str):
        console.print(f"Exact sums: not for this study as it stands. {sums}")
        return
    table = Table("protocol", *_HEADINGS)
    table.add_row("histogram", best.design, *_figures(best))
    if sums.equal is not None:
        table.add_row("", f"the same at local epsilon {sums.equal.epsilon:g}", *_figures(sums.equal))
    table.add_row("sum", sums.sums.design, *_figures(sums.sums))
    if sums.trusted is not None and sums.trusted_between is not None:
        low, high = sums.trusted_between
        told = (f"{sums.trusted:.3f}", f"{low:.2f} to {high:.2f}", "", "")
        table.add_row("a trusted party", "the same tables, noise added once", *told)
    console.print(f"{sums.sums.cohort:,} people, the two protocols at epsilon {epsilon:g}:")
    console.print(table)
    for line in sums.sentences(epsilon):
        console.print(line, soft_wrap=True)


def _cell(forecast: Forecast, too_small: bool) -> str:
    return f"{forecast.auc:.3f} ({forecast.between}) {forecast.design}{' (too few people)' if too_small else ''}"
