"""`anonml peer federated`: jobs of Flower or NVFlare that ask for messages of this computer, and their owner's
answers."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from anon.errors import Malformed, Refused
from anon.kit.terminal.foreign import framed, inline, short
from anon.kit.terminal.options import JsonOption, picked, print_json
from anon.kit.terminal.printing import Terminal
from peer.ledger.declaration import declaration_of
from peer.ledger.job_store import FederatedJob, JobState, JobStore
from peer.opening import DEFAULT_HOME, PRIVACY, HomeOption, agreed, home_of
from peer.view import made_ready

WAITING = (JobState.ASKED, JobState.STOPPED)
"""The states in which an owner is asked."""


def join(app: typer.Typer) -> None:
    """Add `federated` to the commands of `anonml peer`."""
    app.command(rich_help_panel=PRIVACY)(federated)


def federated(
    file: Annotated[Path | None, typer.Argument(help="A job's declaration, TOML: read it, and answer.")] = None,
    job: Annotated[str, typer.Option("--job", help="Answer a job by the beginning of its id.")] = "",
    no: Annotated[bool, typer.Option("--no", help="Say no, or end a job that you agreed to.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Say yes without being asked.")] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Show jobs of Flower or NVFlare, and answer one. Nothing leaves for a job without your yes."""
    peer_home = home_of(home)
    made_ready(peer_home)
    with closing(JobStore(peer_home.store_path, os.urandom)) as store:
        if file is not None:
            store.ask(terms := declaration_of(_existing(file)))
            job = terms.job.hex()
        jobs = {known.terms.job: known for known in store.jobs()}
        if job or yes or no:
            among = {known: f"{held.terms.title} ({held.state})" for known, held in jobs.items()}
            _answer(store, jobs[picked(among, job, "no federated job asks here")], no, yes)
        elif as_json:
            print_json([_json(known) for known in jobs.values()])
        else:
            _show(list(jobs.values()))


def _existing(file: Path) -> Path:
    if not file.is_file():
        raise Malformed(f"{file.name}: no such file; name the job's declaration")
    return file


def _answer(store: JobStore, known: FederatedJob, no: bool, yes: bool) -> None:
    console, job = Terminal(), known.terms.job
    _show_one(console, known)
    if no:
        store.refuse(job)
        console.print("nothing more leaves for it; what was reserved and not spent is back")
        return
    if known.state not in WAITING:
        raise Refused(f"this job is {known.state}; --no ends it")
    if yes or agreed("Shall this leave?", console):
        store.agree(job)
        console.print("agreed; `anonml peer federated --no` ends it")
    else:
        console.print("not agreed; nothing leaves for it. --no puts it away")


def _show(jobs: list[FederatedJob]) -> None:
    console = Terminal()
    if not jobs:
        console.print("no federated job asks here")
    for known in jobs:
        told = f"{known.state}, {known.answered} of {known.terms.rounds} rounds answered"
        console.print(f"{known.terms.job.hex()[:8]} {short(known.terms.title)}: {told}", soft_wrap=True)
        if known.state in WAITING:
            console.print(f"  `anonml peer federated --job {known.terms.job.hex()[:8]}` shows it and asks you")


def _show_one(console: Terminal, known: FederatedJob) -> None:
    console.print(framed(known.terms.title, "its title, in the words of who asks"))
    console.print(framed(known.terms.asked_by, "who asks, in their own words"))
    for line in known.terms.sentences():
        console.print(f"- {inline(line)}", soft_wrap=True)
    if known.reason:
        console.print(f"It was stopped: {inline(known.reason)}", soft_wrap=True)


def _json(known: FederatedJob) -> dict[str, Any]:
    terms = known.terms
    return {
        "job": terms.job.hex(),
        "title": terms.title,
        "state": known.state,
        "rounds": terms.rounds,
        "answered": known.answered,
        "numbers": terms.length,
        "epsilon_each": terms.each.epsilon / 1e9,
        "epsilon_total": terms.total.epsilon / 1e9,
        "rho_each": terms.rho / 1e9,
        "spent": (known.entry.spent if known.entry is not None else 0) / 1e9,
        "reserved": (known.entry.reserved if known.entry is not None else 0) / 1e9,
    }
