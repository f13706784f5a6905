"""`anonml study synthesize` and `dry-round`: made-up people, and tellers that add some up. `anonml aggregator report`
with a test set."""

from __future__ import annotations

import csv
import os
import secrets
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer
from attrs import asdict

from aggregator.app import AggregatorApp
from aggregator.lab.cli_plan import plan
from aggregator.opening import DEFAULT_HOME, PUBLISH, HomeOption, existing, pick
from aggregator.protocols.installed import PROTOCOLS
from anon.errors import Refused
from anon.kit.terminal.foreign import inline, short
from anon.kit.terminal.options import JsonOption, StudyOption, finished, print_json
from anon.kit.terminal.printing import Terminal, styled
from anon.storage.private_files import new_private

StudyFile = Annotated[Path, typer.Argument(help="A study file.")]


def join_study(app: typer.Typer) -> None:
    """Add the lab's commands to those of `anonml study`."""
    app.command()(plan)
    app.command()(synthesize)
    app.command()(dry_round)


def dry_round(file: StudyFile, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Add up made-up people with the tellers of a study file, before anybody is asked. Exit code 1 if they cannot.

    Each teller is asked what a study asks of it: to sign, to share a key, to check packets, to add noise. Nothing is
    published.
    """
    from aggregator.lab.dry_round import DryRound, tried

    places = PROTOCOLS.load_proposal(file).tellers
    if not places:
        raise Refused(f"{file}: names no tellers; write two `[[tellers]]` first")

    async def work() -> DryRound:
        async with AggregatorApp(home) as aggregator:
            return await tried(places, aggregator)

    outcome = finished(work())
    if as_json:
        print_json(asdict(outcome))
    else:
        for answer in outcome.answers:
            line = styled("[bold]{name}[/]: {said}", name=short(answer.name), said=inline(answer.fault or answer.words))
            Terminal().print(line, soft_wrap=True)
        opened = (
            f"They added up {outcome.members} made-up people. Nobody was asked, and nothing is published.\n"
            f"Tellers show this round as {outcome.number}, with the words {outcome.words}."
        )
        if told := opened if outcome.members else inline(outcome.fault):
            Terminal().print(told, soft_wrap=True)
    if not outcome.members:
        raise typer.Exit(1)


def join_aggregator(app: typer.Typer) -> None:
    """Add `report` to the commands of `anonml aggregator`."""
    app.command(rich_help_panel=PUBLISH)(report)


def synthesize(
    file: StudyFile,
    rows: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many people to make up.")] = 500,
    output: Annotated[Path | None, typer.Option(help="Where to write the CSV; standard output by default.")] = None,
) -> None:
    """Write made-up people for a pilot (`anonml simulate STUDY.toml --data FILE`) before anyone is asked.

    Columns that a feature reads directly get values of its range or categories; all others small whole numbers. The
    label follows the first feature half of the time, so that there is something to find.
    """
    from aggregator.lab.synthetic import computed, people

    if output is not None and output.exists():
        raise Refused(f"{output}: already exists; name another file")
    proposal = PROTOCOLS.load_proposal(file)
    header, body = people(proposal, rows, secrets.SystemRandom())
    if unfounded := computed(proposal):
        names = ", ".join(unfounded)
        typer.echo(f"caution: made-up numbers say little of features that are computed: {names}", err=True)
    with output.open("w", newline="", encoding="utf-8") if output else _stdout() as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(body)


def _stdout() -> TextIO:
    return os.fdopen(os.dup(sys.stdout.fileno()), "w", newline="", encoding="utf-8")


def report(
    file: Annotated[Path, typer.Argument(help="A new file: report.html, or report.pdf.")],
    test: Annotated[
        Path | None, typer.Option(help="CSV of public, synthetic or last year's people with labels, for the ROC curve.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that tells people apart, when they have several rows.")
    ] = None,
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write a published study's report, with errors on a test set if one is given; as PDF if the name ends in .pdf."""
    from aggregator.intake.workers import Workers
    from aggregator.lab.tested_report import full_report, read_test_file
    from aggregator.report.pdf import to_pdf

    if file.exists():
        raise Refused(f"{file}: already exists; name another file")
    people = read_test_file(test) if test is not None else ""

    async def work() -> str:
        async with AggregatorApp(existing(home)) as aggregator:
            return await full_report(aggregator.study(pick(aggregator, study)), Workers(0), people, person)

    page = finished(work())
    with new_private(file) if people else file.open("xb") as target:  # errors by subgroup tell of the people tested
        target.write(to_pdf(page) if file.suffix == ".pdf" else page.encode())
    Terminal().print(f"{file} written")
