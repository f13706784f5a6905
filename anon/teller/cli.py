"""`anonml teller ...`: be one of the tellers of a study. Every command that reads takes --json."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anon.errors import Malformed, Refused
from anon.kit.terminal.hints import completed, noting
from anon.kit.terminal.options import JsonOption, finished, print_json
from anon.teller.news import SHORTEST
from anon.wire.addresses import THIS_MACHINE

if TYPE_CHECKING:
    from anon.ldp import NanoEpsilon
    from anon.study.manifest import Manifest
    from anon.teller.home import TellerHome
    from anon.teller.news import News
    from anon.teller.overview import StudyOverview

    Cost = Callable[[Manifest], NanoEpsilon]

RUN, WATCH = "Run", "Watch"
DEFAULT_HOME = Path(os.environ.get("ANONML_TELLER_HOME", "~/.anonml-teller")).expanduser()
PORT = 8760
_SET_IN = "\n    "
"""Between the lines of a long title: no text of a stranger's begins a line."""
COST = "cost of sums"
"""The socket of what names a study's epsilon: a program that serves loads nothing of it."""
HomeOption = Annotated[
    Path, typer.Option("--home", callback=noting("teller"), help="The teller's directory. Make no backup of it.")
]
app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Be a teller: add up shares of a study's vectors, with noise."
)


@app.command(rich_help_panel=RUN)
def init(
    name: Annotated[str, typer.Option(help="The teller's name in studies: the person or office that runs it.")],
    loopback: Annotated[
        bool, typer.Option("--loopback", help="To try it on this machine alone: no Tor, and no protection by it.")
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="With --loopback: the port.")] = PORT,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Make the teller's directory, its lasting key and its onion address; or give it another name."""
    _make(name, loopback, port, home)
    _show(home, as_json)


def _make(name: str, loopback: bool, port: int, home: Path) -> None:
    from anon.serving.onion_key import keep_key
    from anon.teller.home import PLACE, Place, open_home

    if port != PORT and not loopback:
        raise Refused("--port goes with --loopback; an onion service needs none")
    address = f"{THIS_MACHINE}:{port}" if loopback else ""
    Place(name, address or f"{THIS_MACHINE}:{PORT}")  # before anything is made
    opened = open_home(home, os.urandom)
    address = address or keep_key(home, os.urandom).address()
    if (home / PLACE).exists() and opened.place().address != address:
        raise Refused(f"this teller is served at {opened.place().address}, and studies name it so; use another --home")
    opened.keep_place(Place(name, address))


@app.command(rich_help_panel=RUN)
def serve(
    name: Annotated[str, typer.Option(help="Make the teller first, as `init` does with the same options.")] = "",
    loopback: Annotated[bool, typer.Option("--loopback", help="With --name: on this machine alone.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="With --name and --loopback: the port.")] = PORT,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Answer the aggregators of this teller's studies, until stopped (Ctrl-C). Safe to stop or kill at any time."""
    from anon.kit.terminal.logs import beginning, with_times
    from anon.kit.terminal.progress import on_one_line
    from anon.teller.home import existing_home

    with_times()
    if name:
        _make(name, loopback, port, home)
    elif loopback or port != PORT:
        raise Refused("--loopback and --port go with --name, which makes a teller; without it one is served as it is")
    opened = existing_home(home, os.urandom)

    def ready(address: str) -> None:
        if as_json:
            print_json({"address": address, "words": _words(home)})
        else:
            write(f"teller {opened.place().name} serving at {address} (Ctrl-C stops; nothing is lost)")
            write(f"its words: {_words(home)}")
            if address.startswith(THIS_MACHINE):
                write("it answers this computer alone, for a trial; without --loopback, through Tor")

    def write(line: str) -> None:
        sys.stdout.write(f"{beginning(sys.stdout)}{line}\n")
        sys.stdout.flush()

    def say(line: str) -> None:
        if not as_json:
            sys.stderr.write(f"{beginning(sys.stderr)}{line}\n")

    def tell(news: News) -> None:
        with suppress(OSError):  # whoever read the lines is gone; the teller goes on
            if as_json:
                print_json(news.figures())
            else:
                write(news.said)

    async def work() -> None:
        from anon.teller import service

        serving = asyncio.ensure_future(service.serve(opened, os.urandom, ready, say, on_one_line, tell))
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
        await serving

    try:
        finished(work())
    except (KeyboardInterrupt, asyncio.CancelledError):
        if not as_json:
            with suppress(OSError):
                write(completed("stopped; nothing is lost: `anonml teller serve` goes on from here"))


@app.command(rich_help_panel=RUN)
def allow(
    keys: Annotated[list[str] | None, typer.Argument(help="As `anonml aggregator init` prints them.")] = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="Name none: any aggregator may ask.")] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Name the aggregators that may ask this teller to serve their studies; nobody else may then. No keys: list them.

    Studies that run go on, whoever is named. A teller that is being served heeds it at once.
    """
    from anon.teller.home import existing_home

    opened = existing_home(home, os.urandom)
    if keys and everybody:
        raise Refused("expected either keys or --everybody; nothing was changed")
    try:
        named = [bytes.fromhex(key) for key in keys or ()]
    except ValueError:
        raise Malformed("keys: expected 64 hexadecimal digits each, as `anonml aggregator init` prints them") from None
    if keys or everybody:
        opened.allow({*(opened.allowed() or ()), *named} if keys else None)
    after = "Their studies come by themselves: leave `anonml teller serve` running." if keys else ""
    _show_allowed(opened, as_json, after)


@app.command(rich_help_panel=RUN)
def refuse(
    named: Annotated[
        str, typer.Argument(metavar="KEY", help="An aggregator's key, or a study's first 8 digits (`status`).")
    ],
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Take an aggregator's key back, or leave a study: its shares and keys are erased here, for good.

    Without its key an aggregator asks for no further study. Studies that run go on until this teller leaves each of
    them. A study that it has left has no further sum, unless it has a spare. To leave one, stop the teller first.
    """
    from anon.teller.home import existing_home
    from anon.teller.overview import overview

    opened = existing_home(home, os.urandom)
    allowed, begun = opened.allowed() or frozenset(), named.lower()
    if begun in (kept := {key.hex() for key in allowed}):
        opened.allow({bytes.fromhex(key) for key in kept - {begun}})
        whose = f"{begun} ({_asker(opened, bytes.fromhex(begun))})"
        _show_allowed(opened, as_json, "", f"Taken back: {whose}. It gets no further study; those that run go on.")
        return
    studies = [study for study in overview(opened.journal) if study.study.hex().startswith(begun)]
    if len(begun) < SHORTEST or len({study.study for study in studies}) != 1:
        raise Refused("expected a key that `anonml teller allow` lists, or a study of `anonml teller status`")
    _leave(opened, studies[0])
    if as_json:
        _print_figures(home)
    else:
        sys.stdout.write(completed(_left(studies[0])))


@app.command(rich_help_panel=WATCH)
def words(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """This teller's name, address and words: put the words in a public place of your own, for owners to compare."""
    _show(home, as_json)


@app.command(rich_help_panel=WATCH)
def status(context: typer.Context, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """The studies that this teller countersigned, how far each of their sums is, and a disk that takes nothing."""
    from anon.kit.terminal.wiring import wiring_of
    from anon.machine.guard import disk_fault
    from anon.teller.home import existing_home
    from anon.teller.overview import overview

    costs = wiring_of(context).all(COST)
    if as_json:
        _print_figures(home, costs)
        return
    opened = existing_home(home, os.urandom)
    studies, fault, now = overview(opened.journal), disk_fault(home), time.time()
    if not opened.is_served():
        away = "nobody serves this teller now, and its studies wait: start it with `anonml teller serve`\n"
        sys.stdout.write(completed(away))
    if fault:
        sys.stdout.write(f"this teller needs you: {fault}\n")
    if not studies:
        none = "no study yet: staff get name and address, your page the words (`anonml teller words`)\n"
        sys.stdout.write(completed(none))
        return
    for line in _lines(studies, now, costs):
        sys.stdout.write(line + "\n")


@app.command(rich_help_panel=WATCH)
def doctor(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Look at this teller: installation, home, words, clock, disk, and if it is reachable. Exit code 1 for a fault."""
    from anon.kit.terminal.findings import show
    from anon.teller.diagnosis import findings
    from anon.teller.service import ask_words

    show([*findings(home, lambda opened: asyncio.run(ask_words(opened)))], as_json)


def _show_allowed(home: TellerHome, as_json: bool, after: str = "", before: str = "") -> None:
    allowed = home.allowed()
    if as_json:
        print_json({"everybody": allowed is None, "allowed": sorted(key.hex() for key in allowed or ())})
        return
    nobody = "No aggregator may ask this teller for a study; name one: `anonml teller allow KEY`."
    everybody = "Every aggregator may ask this teller; name some, and others may not."
    named = [f"{key.hex()} ({_asker(home, key)})" for key in sorted(allowed or ())]
    head = "These may ask this teller to serve their studies, and no others:" if named else nobody
    lines = [before, everybody if allowed is None else head, *named, after]
    sys.stdout.write(completed("".join(f"{line}\n" for line in lines if line)))


def _asker(home: TellerHome, key: bytes) -> str:
    """Who asked with this key, as the newest study of it says; its words, by telephone say, tell whose it is."""
    from anon.kit.terminal.foreign import short
    from anon.teller.overview import overview
    from anon.transparency.fingerprint import words as words_of_key

    asked = [study.manifest for study in overview(home.journal) if study.manifest.aggregator_key == key]
    newest = max(asked, key=lambda manifest: manifest.timetable.published, default=None)
    whose = f"calls itself {short(newest.contact)}" if newest else "no study of it is here yet"
    return f"{whose}; its words: {words_of_key(key)}"


def _left(study: StudyOverview) -> str:
    from anon.kit.terminal.foreign import short

    manifest, spare = study.manifest, study.quorum.whole.has_spare
    goes_on = "it goes on with its other tellers" if spare else "it gets no further sum"
    return (
        f"Left {study.study.hex()[:SHORTEST]} {short(manifest.title)}: its shares and keys are erased here.\n"
        f"Tell {short(manifest.contact)}, since {goes_on}. Start your teller again for others: `anonml teller serve`.\n"
    )


def _leave(home: TellerHome, study: StudyOverview) -> None:
    from anon.teller.journal import Journal
    from anon.teller.session import Teller

    held = home.lock()
    try:
        with closing(Journal(home.journal)) as journal:
            Teller(home.key, journal, os.urandom).finish(study.quorum.id, int(time.time()))
    finally:
        os.close(held)


def _print_figures(home: Path, costs: Sequence[Cost] = ()) -> None:
    from anon.ldp import NANO
    from anon.machine.guard import disk_fault
    from anon.teller.home import existing_home
    from anon.teller.overview import overview

    studies, fault, now = overview(existing_home(home, os.urandom).journal), disk_fault(home), time.time()
    found = [next(_epsilons(study.manifest, costs), None) for study in studies]
    known = [{} if epsilon is None else {"epsilon": epsilon / NANO} for epsilon in found]
    print_json([study.figures(now) | cost | {"fault": fault} for study, cost in zip(studies, known, strict=True)])


def _epsilons(manifest: Manifest, costs: Sequence[Cost]) -> Iterator[NanoEpsilon]:
    """The one epsilon that members read; none of a protocol that this program does not know."""
    for cost in costs:
        with suppress(Malformed):
            yield cost(manifest)


def _lines(studies: Sequence[StudyOverview], now: float, costs: Sequence[Cost] = ()) -> Iterator[str]:
    from anon.kit.terminal.foreign import inline, short, wrapped
    from anon.kit.terminal.printing import Terminal
    from anon.ldp import format_epsilon
    from anon.study.features import USUAL_COHORT
    from anon.text.foreign import LONGEST_TOLD, Quoted
    from anon.text.instants import instant
    from anon.transparency.fingerprint import words as words_of_study

    for study in studies:
        manifest, whole = study.manifest, study.quorum.whole
        members = "" if study.members is None else f", {study.members} members"
        fellow = f", with {short(study.fellow)}" if study.fellow else ""
        since = "" if study.ended is None else f" since {instant(study.ended)}"
        title = inline(Quoted(manifest.title, LONGEST_TOLD))
        head = wrapped(f"{study.study.hex()[:SHORTEST]} {title}", Terminal().width - len(_SET_IN))
        yield f"{_SET_IN.join(head)}{fellow}: {study.stage}{since}{members}"
        yield f"  words {words_of_study(study.study)}"
        asker = inline(Quoted(manifest.contact, LONGEST_TOLD))
        yield f"  asked for by {asker}, with the key {manifest.aggregator_key.hex()}"
        yield f"  its tellers: {', '.join(short(teller.name) for teller in whole.tellers)}"
        least = manifest.cohort.minimum
        few = f" (few, as in a trial; {USUAL_COHORT} are usual)" if least < USUAL_COHORT else ""
        yield f"  begins with at least {least} members{few}; a sum may be of {whole.minimum}, as some may stay away"
        for epsilon in _epsilons(manifest, costs):
            yield f"  costs epsilon {format_epsilon(epsilon)}, as members read"
        yield "  each teller adds noise: members' programs check that it keeps the epsilon they read"
        yield from _dates(study, now)
        for sum_status in study.sums:
            yield f"  {sum_status.said}"


def _dates(study: StudyOverview, now: float) -> Iterator[str]:
    """Until when it runs; in place of that what its dates say about the staff's clock, where they do not hold."""
    from anon.study.proposal import REHEARSAL
    from anon.teller.overview import OVER
    from anon.text.instants import instant

    table, is_over = study.manifest.timetable, study.stage == OVER
    if study.runs_ahead(now):
        early = "members or packets came before them, so the staff's clock runs ahead of yours"
        yield f"  its dates {'did' if is_over else 'do'} not hold here: {early}"
        yield "  a rehearsal or a dry round does that; in any other study tell the staff and the other tellers"
        if not is_over:
            yield "  keep serving until it is over"
    elif not is_over:
        if study.manifest.title.startswith(REHEARSAL):
            yield "  the staff call it a rehearsal: by their clock these dates then pass in minutes"
        yield f"  enrolment ends {instant(table.enrol_closes)}"
        yield f"  answers come until {instant(study.manifest.windows[-1].closes)}"
        planned, latest = instant(table.ends), instant(study.needed_until)
        yield f"  keep serving until it is over: {planned}, or if a teller is away then, at the latest {latest}"


def _show(home: Path, as_json: bool) -> None:
    from anon.teller.home import existing_home

    place = existing_home(home, os.urandom).place()
    if as_json:
        print_json({"home": str(home), "name": place.name, "address": place.address, "words": _words(home)})
        return
    sys.stdout.write(f"teller {place.name}\naddress {place.address}\nwords {_words(home)}\n")


def _words(home: Path) -> str:
    from anon.teller.home import existing_home
    from anon.transparency.fingerprint import teller_words

    return teller_words(bytes(existing_home(home, os.urandom).key.verify_key))
