"""`anonml study rehearse`: made-up people take part in a study as its file says it, before anybody is asked."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console

from aggregator.opening import DEFAULT_HOME, HomeOption, existing
from aggregator.protocols.installed import PROTOCOLS
from aggregator.report.rehearsal import planted
from aggregator.store.home import open_home
from anon.errors import Refused
from anon.kit.terminal.foreign import short
from anon.kit.terminal.printing import Terminal
from anon.study.proposal import REHEARSAL, Proposal
from examples.checks import faults

MOST = 2_000


def join(app: typer.Typer) -> None:
    """Add the command to those of `anonml study`."""
    app.command()(rehearse)


def rehearse(
    file: Annotated[Path, typer.Argument(help="A study file.")],
    people: Annotated[int, typer.Option(min=0, max=MOST, help="How many; 0: the study's minimum.")] = 0,
    report: Annotated[Path | None, typer.Option(help="Where the report is kept; else in this folder.")] = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Let made-up people take part in a study, to see all of it before anybody is asked. The report is kept.

    Its own tellers add up, where it names any. All else runs on this computer, by a clock of its own: weeks pass in
    minutes. Nothing is published, and nobody else can take part.
    """
    from examples.closing import kept_here  # late, and the next: the command is known without the shells that it uses
    from examples.own_study import OwnStudy, made_up
    from examples.study_run import StudyRun

    proposal = PROTOCOLS.load_proposal(file)
    number = demanded(proposal, people)
    key = open_home(existing(home), bytes).signing_key if proposal.tellers else None
    with _folder(home) as folder:
        wanted = OwnStudy.of(made_up(file, proposal, number), folder, proposal, time.time(), key)
        console = Console(stderr=True)
        console.print(made_of(proposal, number), highlight=False, markup=False)
        figures = StudyRun(wanted, console).lived()
        if (made := folder / "published" / "report.html").is_file():
            report = Path(copyfile(made, report)) if report else kept_here(made, "rehearsal")
        else:
            report = None
    said, code = outcome(figures, report)
    Terminal().print(said)
    if code:
        raise typer.Exit(code)


def made_of(proposal: Proposal, people: int) -> str:
    """The first lines of a rehearsal: who takes part, what their answers hold, and what keepers of tellers see."""
    found = planted(proposal)
    pattern = (
        f"Yes is the label of three of four people in the upper half of {short(found)}, and of one of four in its "
        "lower half; all else is chance." if found else "Label and answers are chance."
    )  # fmt: skip
    told = (
        f" Its tellers' status shows it as {short(REHEARSAL + proposal.title)}, with the words below, and with dates "
        "that your own clock runs ahead of." if proposal.tellers else ""
    )  # fmt: skip
    return f"A rehearsal: all of its {people:,} people are made up, and drawn now. {pattern}{told}"


def demanded(proposal: Proposal, people: int) -> int:
    """How many take part. Raises `Refused` for a study that so many cannot bring to its end."""
    if proposal.cohort.admission == "allow-list":
        raise Refused('made-up people join by links, which an allow-list has none of; rehearse with admission = "open"')
    least, most = proposal.cohort.minimum, min(proposal.cohort.maximum or MOST, MOST)
    number = people or least
    if not least <= number <= most:
        raise Refused(f"--people: expected {least:,}, the study's minimum, to {most:,}; got {number:,}")
    return number


def outcome(figures: Mapping[str, Any], report: Path | None) -> tuple[str, int]:
    """The last lines and the exit code, of the figures of `StudyRun.lived`. `report`: where it is kept."""
    kept = f"The report is {report}" if report else "There is no report"
    if found := faults(figures, scored=False):
        return "\n".join([*found, f"{kept}."]), 1
    return (
        f"{figures['enrolled']:,} made-up people took part, {figures['accepted']:,} packets came, and all was checked. "
        f"{kept}: it tells of nobody."
    ), 0


@contextmanager
def _folder(home: Path) -> Iterator[Path]:
    """A folder for the rehearsal alone, which only its owner reads; in the home, for it may have the home's key.

    It goes in the end, also where the system ends the program (SIGTERM).
    """
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with TemporaryDirectory(prefix="rehearsal-", dir=home if home.is_dir() else None) as name:
            yield Path(name).absolute()  # its programs run elsewhere
    finally:
        signal.signal(signal.SIGTERM, before)
