"""The common parts of the commands of `anonml aggregator`: options, opening a home, naming a study, printing a
status."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from aggregator.app import AggregatorApp
from aggregator.rules.lifecycle import OVER
from aggregator.store.home import Home
from aggregator.study.status import StudyStatus
from anon.errors import Refused, Unreachable
from anon.kit.terminal.hints import noting
from anon.kit.terminal.options import picked
from anon.storage.home import aggregators_home
from anon.transparency.fingerprint import words

RUN, WATCH, PUBLISH, KEEP = "Run", "Watch", "Publish", "Keep"
"""The groups of commands in `anonml aggregator --help`."""
DEFAULT_HOME = Path(os.environ.get("ANONML_AGGREGATOR_HOME", "~/.anonml-aggregator")).expanduser()
HomeOption = Annotated[
    Path,
    typer.Option(
        "--home",
        callback=noting("aggregator", aggregators_home),
        help="The aggregator's directory, or a peer's: both in one.",
    ),
]
RestoredOption = Annotated[
    bool,
    typer.Option("--restored", help="After a restore, once: every other copy of this aggregator is stopped for good."),
]

IncompleteOption = Annotated[
    bool,
    typer.Option("--incomplete", help="With --restored: go on with studies that lack what came after the backup."),
]


def existing(home: Path) -> Path:
    """The home, when an aggregator lives there. Raises `Refused`: a mistyped path must not make a new one."""
    if not (home / "signing.key").is_file():
        raise Refused(f"{home}: no aggregator here; check --home, or publish a study first (`anonml study publish`)")
    return home


def pick(aggregator: AggregatorApp, prefix: str) -> bytes:
    """The one study whose id begins so. Raises `Refused` and lists them."""
    studies = {live.study: f"({live.phase})" for live in aggregator.studies()}
    return picked(studies, prefix, "no study yet: `anonml study publish STUDY.toml`")


def study_status(status: StudyStatus) -> dict[str, object]:
    """A status as JSON."""
    return {
        "study": status.study.hex(),
        "fingerprint": words(status.study),
        "title": status.title,
        "phase": str(status.phase),
        "enrolled": status.enrolled.number,
        "enrolled_exact": status.enrolled.exact,
        "minimum": status.minimum,
        "enough": status.enough,
        "ends": status.ends,
        "accepted": status.accepted.number,
        "accepted_exact": status.accepted.exact,
        "documents": status.documents,
        "fault": status.fault,
        "left_out": list(status.left_out),
    }


def demand_served(home: Home, led: bool, statuses: Sequence[StudyStatus]) -> None:
    """Raises `Unreachable` where no process serves the home or leads, or where studies are under way and none goes on.

    A home without a study, or whose studies are all over, is served well: starting it again would mend nothing.
    """
    if not home.served_at():
        raise Unreachable(f"{home.path}: no process serves it; start one: `anonml aggregator serve`")
    if not led:
        raise Unreachable(f"{home.path}: no process leads, so studies stand still; look at the log of `serve`")
    under_way = [status for status in statuses if status.phase not in OVER]
    if under_way and all(status.fault for status in under_way):
        raise Unreachable(f"{home.path}: no study goes on. {trouble(under_way)[0]}")


def trouble(statuses: Sequence[StudyStatus]) -> list[str]:
    """Faults that keep studies from going on, and parts left out, each with its next step; empty when all is well."""
    lines = [f"study {status.study.hex()[:8]} needs you: {status.fault}" for status in statuses if status.fault]
    return lines + [
        f"study {status.study.hex()[:8]}: {len(status.left_out)} stored packets are damaged and left out of "
        "transcripts, "
        f"counts and model ({'; '.join(status.left_out[:20])}{'; …' if len(status.left_out) > 20 else ''}). "
        "Check this machine's disk and memory, and keep backups elsewhere"
        for status in statuses
        if status.left_out
    ]
