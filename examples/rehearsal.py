"""`anonml study rehearse`: made-up people take part in a study that is published for this machine alone.

They are real peers with real links, noise and tellers; their data are made up, and their homes go afterwards. A study
that others can reach is refused: made-up answers would be counted among theirs.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from aggregator.app import AggregatorApp
from aggregator.network.onion_address import address_of_links
from aggregator.opening import DEFAULT_HOME, HomeOption, existing, pick
from anon.errors import Refused
from anon.kit.terminal.options import StudyOption, finished
from anon.kit.terminal.printing import Terminal
from anon.kit.terminal.progress import on_one_line
from anon.ldp.epsilon import NANO
from anon.machine.clock import elapsed_seconds
from anon.protocols.charge import LOCAL, Budget, Measure, Unit
from anon.route import DirectRoute
from anon.study.manifest import Manifest
from anon.text.instants import instant
from anon.wire.invite import Invite
from peer.app import PeerApp
from peer.data.importing import import_rows
from peer.rules.consent import Policy
from peer.rules.lifecycle import LAST, State
from peer.rules.limits import BudgetLimit
from peer.store.home import PeerHome

Value = int | float | str
MOST = 1_000
LOOKS_SECONDS = 30
"""How long after a study's end the peers look for their packets, at the most: its serving may have ended."""
BETWEEN_SECONDS = 2.0
"""Between two looks at how far the peers are."""
LOG_SECONDS = 60.0
"""Between two lines where no terminal shows one that changes."""
MOST_AMOUNT = 1_000 * NANO
SECONDS_EACH = 1.0
"""For a person to join, and to send: each takes half a second of the processor, which other programs use too."""


def join(app: typer.Typer) -> None:
    """Add the command to those of `anonml study`."""
    app.command()(rehearse)


def rehearse(
    people: Annotated[int, typer.Option(min=0, max=MOST, help="How many; 0: the study's minimum.")] = 0,
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Let made-up people take part in a study on this machine alone, to see all of it before anybody is asked.

    Serve the study meanwhile. It ends when the study has: the report is on the desk then.
    """
    invites, manifest = finished(_invited(home, study, people))
    over = instant(manifest.timetable.ends)
    Terminal().print(f"{len(invites)} made-up people take part until {over}: join, answer, look for packets.")
    with TemporaryDirectory(prefix="anonml-rehearsal-") as folder, ExitStack() as opened:
        peers = _settled(Path(folder), invites, manifest)
        for peer in peers:
            opened.callback(peer.close)
        finished(_live(peers, invites, manifest, on_one_line if sys.stderr.isatty() else _each_minute()))
        ended = Counter(str(status.state) for peer in peers for status in peer.status())
    said, code = outcome(ended, finished(_phase(home, manifest.study_id)))
    Terminal().print(said)
    if code:
        raise typer.Exit(code)


def outcome(ended: Mapping[str, int], phase: str) -> tuple[str, int]:
    """The last line and the exit code: of how the people's studies ended, and the aggregator's own."""
    told = f"made-up people: {', '.join(f'{number} {state}' for state, number in ended.items())}."
    if phase != "published":
        why = (
            f"The study has no report ({phase}): `anonml aggregator status` says why. Where it was too few packets, "
            "this computer was too busy: publish it anew with longer to enrol and to send."
        )
        return f"{told} {why}", 1
    if set(ended) != {"finished"}:
        return f"{told} They found no result that holds their packets; `anonml aggregator status` says why.", 1
    return f"{told} The report is on the desk, or by `anonml aggregator report`.", 0


async def _phase(home: Path, study: bytes) -> str:
    async with AggregatorApp(existing(home)) as aggregator:
        return aggregator.study(study).phase


def _each_minute() -> Callable[[str], None]:
    """A line a minute, for a log."""
    last = [-LOG_SECONDS]

    def progress(line: str) -> None:
        if line and time.monotonic() - last[0] >= LOG_SECONDS:
            last[0] = time.monotonic()
            Terminal().print(line)

    return progress


async def _invited(home: Path, study: str, people: int) -> tuple[list[Invite], Manifest]:
    async with AggregatorApp(existing(home)) as aggregator:
        enrolling = [live.study.hex() for live in aggregator.studies() if live.phase == "enrolling"]
        live = aggregator.study(pick(aggregator, study or (enrolling[0] if len(enrolling) == 1 else "")))
        manifest, served = live.manifest, aggregator.home.served_at()
        if manifest.addresses:
            raise Refused("others can reach this study, and its sum would hold made-up people; publish it --loopback")
        if live.phase != "enrolling" or manifest.cohort.admission == "allow-list":
            raise Refused(f"nobody can join by a link now ({live.phase}, admission: {manifest.cohort.admission})")
        if not served:
            raise Refused("nothing serves this study; start `anonml aggregator desk` first")
        where = address_of_links(served, manifest.address)
        number = people or manifest.cohort.minimum
        lengths = [window.closes - window.opens for window in manifest.windows]
        most = int(min(manifest.timetable.enrol_closes - time.time(), *lengths) / SECONDS_EACH)
        if number > most:
            raise Refused(
                f"{number} people on one computer cannot join and send in the times of this study; take at most "
                f"--people {most}, or publish it with longer to enrol and to send"
            )
        drawn = number if manifest.cohort.admission == "invite" else 1
        return list(await aggregator.create_invites(live.study, drawn, where)) * (number // drawn), manifest


def _settled(folder: Path, invites: Sequence[Invite], manifest: Manifest) -> list[PeerApp]:
    """Peers with a row each, whose limits allow the study: nobody's privacy is at stake."""
    from aggregator.lab.synthetic import people as made_up  # a shell: the command is known without it

    columns, rows = made_up(manifest, len(invites), secrets.SystemRandom())
    limits = tuple(
        BudgetLimit(measure, unit, MOST_AMOUNT, MOST_AMOUNT)
        for measure in Measure
        for unit in Unit
        if Budget(measure, unit) != LOCAL
    )
    policy = Policy(MOST_AMOUNT, MOST_AMOUNT, manifest.cohort.minimum, minimum_window=0, limits=limits)
    return [_peer(folder / str(number), manifest, columns, row, policy) for number, row in enumerate(rows)]


def _peer(home: Path, manifest: Manifest, columns: Sequence[str], row: Sequence[Value], policy: Policy) -> PeerApp:
    peer_home, route = PeerHome(home), DirectRoute()
    peer_home.prepare()
    import_rows(peer_home.data_path, manifest.tables[0].name, columns, [row])
    return PeerApp(peer_home, lambda: route, time.time, os.urandom, policy=policy, elapsed=elapsed_seconds)


async def _live(
    peers: Sequence[PeerApp], invites: Sequence[Invite], manifest: Manifest, progress: Callable[[str], None]
) -> None:
    for number, (peer, invite) in enumerate(zip(peers, invites, strict=True)):
        progress(f"{number} of {len(peers)} have said yes")
        await peer.manifest(invite)
        await peer.join(invite, manifest.epsilon)
    rest = manifest.timetable.ends - time.time() + LOOKS_SECONDS
    watching = asyncio.ensure_future(_watched(peers, progress))
    try:
        await asyncio.gather(*(peer.run(rest) for peer in peers))
    finally:
        watching.cancel()
        progress("")


async def _watched(peers: Sequence[PeerApp], progress: Callable[[str], None]) -> None:
    while True:
        progress(_reached(peers))
        await asyncio.sleep(BETWEEN_SECONDS)


def _reached(peers: Sequence[PeerApp]) -> str:
    """How far they are, in a line."""
    found = [status for peer in peers for status in peer.status()]
    enrolled = sum(status.state is not State.CONSENTED for status in found)
    sent = sum(slot.attempts > 0 for status in found for slot in status.slots)
    over = sum(status.state in LAST for status in found)
    return f"of {len(peers)} people {enrolled} enrolled; {sent} packets sent; {over} are done"
