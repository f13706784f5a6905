"""`anonml peer delete` and `erase`: the owner takes one table back, or everything. Each says what that means first."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from anon.errors import Refused
from anon.kit.terminal.foreign import inline, short
from anon.kit.terminal.options import finished
from anon.kit.terminal.printing import Terminal, styled
from peer.app import PeerApp
from peer.data.deleting import demand_table
from peer.network.routes import Routes
from peer.opening import DEFAULT_HOME, PRIVACY, HomeOption, RouteOption, agreed, existing_home, open_peer, routes_of
from peer.rules.lifecycle import State
from peer.run import taking_back_words as words
from peer.run.taking_back import Choice, Erasure, TakingBack
from peer.store.database.migrations import upgrade_home
from peer.store.records import Study
from peer.store.store import Store

YesOption = Annotated[bool, typer.Option("--yes", help="Do it without being asked.")]
_NOBODY = "nobody answered; nothing was deleted (--yes deletes without being asked)"


def join(app: typer.Typer) -> None:
    """Add `delete` and `erase` to the commands of `anonml peer`."""
    app.command(rich_help_panel=PRIVACY)(delete)
    app.command(rich_help_panel=PRIVACY)(erase)


def delete(
    table: Annotated[str, typer.Argument(help="One of your tables; `anonml peer tables` lists them.")],
    leave: Annotated[bool, typer.Option("--leave-studies", help="Leave the studies that read it, too.")] = False,
    answers: Annotated[
        bool, typer.Option("--erase-answers", help="Erase answers too that these studies had from it; they go on.")
    ] = False,
    yes: YesOption = False,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
) -> None:
    """Delete one of your tables, for good. Says first what that means for studies under way."""
    if leave and answers:
        raise Refused("--leave-studies erases the answers as well; give one of the two")
    demand_table(existing_home(home).data_path, table)
    console = _console()
    choice = Choice.LEAVE if leave else Choice.MISSING if answers else Choice.GO_ON
    with _delivered(home, route, console) as mine:
        if not yes:
            choice = _confirmed_table(console, table, mine.concerned(table), choice)
        mine.delete_table(table, choice)
        console.print(f"deleted: {table}")


def _confirmed_table(console: Terminal, table: str, concerned: Sequence[Study], choice: Choice) -> Choice:
    """The owner's choice for the studies. Raises `Refused` on a no."""
    console.print(styled("Delete the table [bold]{table}[/]?", table=table))
    _list(console, words.OF_A_TABLE)
    if concerned:
        console.print("\nStudies under way that read it:")
        _list(console, (f"{study.manifest.title}: {words.standing(study)}." for study in concerned))
        console.print(words.GOES_ON)
        if choice is Choice.GO_ON:
            choice = _asked(console, concerned)
    _demand(console, "Delete the table?")
    return choice


def _asked(console: Terminal, concerned: Sequence[Study]) -> Choice:
    if agreed("Leave these studies, too?", console, _NOBODY):
        return Choice.LEAVE
    worked_out = any(study.has_answers for study in concerned)
    if worked_out and agreed("Erase the answers that are worked out already, too?", console, _NOBODY):
        return Choice.MISSING
    return Choice.GO_ON


def erase(
    silent: Annotated[
        bool, typer.Option("--silent", help="Tell no aggregator that you leave; it needs no passphrase.")
    ] = False,
    yes: YesOption = False,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
) -> None:
    """Erase everything of yours but receipts, what was spent, and proofs; leave all studies. Says first what goes."""
    peer_home = existing_home(home)
    if not peer_home.store_path.exists():
        raise Refused(f"{home}: there is nothing to erase; name the folder of a peer with --home")
    console = _console()
    with _without_passphrase(home) if silent else _delivered(home, route, console) as mine:
        _erased(console, mine, yes, tell=not silent)


def _console() -> Terminal:
    return Terminal(soft_wrap=True)


@contextmanager
def _delivered(home: Path, route: str, console: Terminal) -> Iterator[TakingBack]:
    """An owner takes back within this block; afterwards the aggregators that are owed a withdrawal are told."""
    routes = routes_of(route, home)
    peer = open_peer(home, routes)
    with peer.taking_back() as mine:
        yield mine
    _deliver(peer, routes, console)


@contextmanager
def _without_passphrase(home: Path) -> Iterator[TakingBack]:
    """For an owner who forgot it, too: nothing has to be signed."""
    peer_home = existing_home(home)
    upgrade_home(peer_home)
    with closing(Store(peer_home.store_path, os.urandom)) as store:
        yield TakingBack(peer_home, store, peer_home.data_path, time.time, None)


def _erased(console: Terminal, mine: TakingBack, yes: bool, tell: bool) -> None:
    if not yes:
        _explain(console, mine, tell)
        _demand(console, "Erase everything?")
    result = mine.erase(tell)
    console.print("erased; your receipts and what was spent of your budget are still here")
    _leave_alone(console, result)


def _explain(console: Terminal, mine: TakingBack, tell: bool) -> None:
    under_way = mine.under_way()
    console.print(styled("[bold]Erase everything?[/]\n\nThis goes, for good:"))
    _list(console, words.GOES)
    console.print("\nThis stays:")
    _list(console, words.STAYS)
    console.print(f"\n{words.BEYOND} {words.OVERWRITING}")
    if under_way:
        console.print("\nStudies under way:")
        _list(console, mine.titles())
        console.print(words.LEAVING)
        if words.told(under_way, time.time()):
            how = "(--silent tells nobody)" if tell else ""
            console.print(f"{words.TELL if tell else words.SILENT} {how}".rstrip())


def _leave_alone(console: Terminal, result: Erasure) -> None:
    if result.unknown:
        listed = inline(", ".join(result.unknown))
        console.print(f"left alone, for it is no part of this program: {listed}; delete it yourself if it holds data")


def _deliver(peer: PeerApp, routes: Routes, console: Terminal) -> None:
    """Tell the aggregators that are owed a withdrawal, or say what remains to be done for it."""
    if peer.store.retired():
        return
    owed = [status for status in peer.status() if status.state is State.LEAVING]

    async def told() -> list[State]:
        return [await peer.deliver_withdrawal(withdrawal.study) for withdrawal in owed]

    for withdrawal, state in zip(owed, finished(told(), routes.close), strict=True):
        done = "was told that you left" if state is not State.LEAVING else (
            "has not answered yet: `anonml peer run` tells it before enrolment closes"
        )
        console.print(f"the aggregator of {short(withdrawal.title)} {done}")


def _demand(console: Terminal, question: str) -> None:
    if not agreed(question, console, _NOBODY):
        raise Refused("you declined; nothing was deleted")


def _list(console: Terminal, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(f"  * {inline(line)}")
