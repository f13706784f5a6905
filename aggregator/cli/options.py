"""What the commands of `anonml aggregator` share: options, opening a home, naming a study, printing a status."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from aggregator.app import AggregatorApp, StudyStatus
from anon.errors import Refused
from anon.fingerprint import words
from anon.homes import aggregators_home

T = TypeVar("T")

DEFAULT_HOME = Path(os.environ.get("ANONML_AGGREGATOR_HOME", "~/.anonml-aggregator")).expanduser()
HomeOption = Annotated[
    Path,
    typer.Option("--home", callback=aggregators_home, help="The aggregator's directory, or a peer's: both in one."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON.")]
StudyOption = Annotated[str, typer.Option("--study", help="Study id or its beginning; not needed when there is one.")]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine."""
    return asyncio.run(work)


def out(value: object) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(json.dumps(value, sort_keys=True) + "\n")
    sys.stdout.flush()


def existing(home: Path) -> Path:
    """The home, when an aggregator lives there. Raises `Refused`: a mistyped path must not make a new one."""
    if not (home / "signing.key").is_file():
        raise Refused(f"{home}: no aggregator here; check --home, or publish a study first (`anonml study publish`)")
    return home


def pick(aggregator: AggregatorApp, prefix: str) -> bytes:
    """The study whose id begins with `prefix`. Raises `Refused` when it is none or several."""
    found = [live for live in aggregator.studies() if live.study.hex().startswith(prefix.lower())]
    if len(found) == 1:
        return found[0].study
    if not found:
        missing = f"no study begins with {prefix}" if prefix else "no study yet: `anonml study publish study.toml`"
        raise Refused(f"{missing} (`anonml aggregator status` lists them)")
    listed = ", ".join(f"{live.study.hex()[:8]} ({live.phase})" for live in found)
    raise Refused(f"several studies: {listed}; choose one with --study")


def study_status(status: StudyStatus) -> dict[str, object]:
    """A status as JSON."""
    return {
        "study": status.study.hex(),
        "fingerprint": words(status.study),
        "title": status.title,
        "phase": str(status.phase),
        "enrolled": status.enrolled,
        "minimum": status.minimum,
        "ends": status.ends,
        "accepted": status.accepted,
        "documents": status.documents,
    }
