"""Many real peers in one process: each with its own keys, ledger, store, data and consent policy. For demos and tests.

    python -m examples.hosting --people people.jsonl --homes DIR --clock FILE --keeper SOCKET [--tor DIR]

A line of `people.jsonl` is one peer: {"table": name, and either "columns" and "rows", or "file"}. Every peer's home is
made and its data imported first; then one line says how many, and one line of JSON is read from standard input:
{"links": [one invite link per peer], "comes": [the instant at which each looks at its link]}. The owner's yes is given
by the policy. All run on the virtual clock of `examples.clock`, each by its own `Timepiece`. With `--tor` they share
one tor, which is kept in that folder: each exchange has a circuit of its own, and the figures say how many tor
reported.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from anon.errors import AnonmlError
from anon.ldp.epsilon import NANO
from anon.protocols.charge import LOCAL, Budget, Measure, Unit
from anon.queries import process
from anon.queries.process import Work
from anon.route import DirectRoute, Route
from anon.route.tor import TorKeeper
from anon.transparency.closing import CheckedLists
from anon.wire.invite import parse_invite
from examples.circuits import CircuitLog, WatchedRoute, negative_control
from examples.clock import HeldRoute, Party, Timepiece
from examples.progress import HostProgress
from peer.app import PeerApp
from peer.data.evaluate import Evaluate, at_once
from peer.data.importing import import_file, import_rows
from peer.rules.consent import Policy
from peer.rules.lifecycle import State
from peer.rules.limits import BudgetLimit
from peer.store.home import PeerHome

EXCHANGES = 32
"""Most exchanges of one process through tor at once."""
CHILD_SECONDS = 600.0
"""Real seconds after which a child that evaluates is ended, however busy the machine is."""
MOST = 1000 * NANO
"""The most that the owner of made-up data agrees to, in one study and in all: nobody's privacy is at stake."""
LIMITS = tuple(
    BudgetLimit(measure, unit, MOST, MOST)
    for measure in Measure
    for unit in Unit
    if Budget(measure, unit) != LOCAL
)
_CHECKED = CheckedLists()
"""The peers of one process check the one public list of credentials once."""


def main() -> None:
    """Host every peer of the file, then print one JSON line of what became of them."""
    options = _options()
    _allow_many_files()
    with options.people.open(encoding="utf-8") as lines:
        people = [json.loads(line) for line in lines]
    party = Party(options.clock, options.keeper)
    way = Way()
    hosted = [
        _settle_in(person, options.homes / f"{number:05d}", way, party, options.minimum_cohort)
        for number, person in enumerate(people)
    ]
    _say({"settled": len(hosted)})
    gc.freeze()  # homes and modules stay for the whole life of this process
    order = json.loads(sys.stdin.readline())
    progress = HostProgress(options.homes / "progress")
    with asyncio.Runner(loop_factory=party.loop) as runner:
        figures = runner.run(_hosted(hosted, order, party, way, options.tor, progress))
    party.over()
    _say(figures)


@define
class Way:
    """The route that all peers of the process take, known once tor is up."""

    route: Route = field(factory=DirectRoute)

    def __call__(self) -> Route:
        """The route of an exchange."""
        return self.route


@frozen
class Hosted:
    """One peer and its clock."""

    peer: PeerApp
    time: Timepiece

    async def live(self, link: str, comes: float, progress: HostProgress) -> str:
        """Look, say yes, and do each thing when it is due, until the study is over. Why it was not joined, if so."""
        await self.time.until(comes)
        with self.time.working():
            try:
                invite = parse_invite(link)
                manifest = await self.peer.manifest(invite)
                await self.peer.join(invite, manifest.epsilon)
            except AnonmlError as refused:
                progress.add(ended=1)
                return f"not joined: {refused.code}"
        with self.peer.held():
            await self._follow(invite.study, progress)
        progress.add(ended=1)
        return ""

    async def _follow(self, study: bytes, progress: HostProgress) -> None:
        due: float | None = self.time()
        joined = sent = 0
        while due is not None:
            await self.time.until(due)
            with self.time.working():
                due = await self.peer.step(study)
            if due is None or due <= self.time():  # something was done
                enrolled, left = self._reached(study)
                progress.add(enrolled=enrolled - joined, sent=left - sent)
                joined, sent = enrolled, left

    def _reached(self, study: bytes) -> tuple[int, int]:
        """1 once it is enrolled, and how many packets have left."""
        enrolled = self.peer.store.state(study) is not State.CONSENTED
        return int(enrolled), sum(1 for _ in _sent(self.peer.store.outbox(study)))


async def _hosted(
    hosted: list[Hosted], order: dict[str, Any], party: Party, way: Way, tor: Path | None, progress: HostProgress
) -> dict[str, Any]:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _stop, asyncio.current_task())
    await process.start()
    if tor is None:
        way.route = HeldRoute(DirectRoute(), party)
        return await host(hosted, order, progress)
    async with TorKeeper(tor) as keeper:
        log = CircuitLog()
        await keeper.socks()
        assert keeper.tor is not None
        async with log.following(keeper.tor.controller):
            way.route = HeldRoute(WatchedRoute(keeper, asyncio.Semaphore(EXCHANGES), log), party)
            figures = await host(hosted, order, progress)
            invite = parse_invite(order["links"][0])
            path = f"/v1/{invite.study.hex()}/heads"
            return figures | await log.figures() | await negative_control(keeper, log, invite.address, path)


def _stop(task: asyncio.Task[Any] | None) -> None:
    if task is not None:
        task.cancel()


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, sort_keys=True) + "\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=Path, required=True)
    parser.add_argument("--homes", type=Path, required=True)
    parser.add_argument("--clock", type=Path, required=True)
    parser.add_argument("--keeper", type=Path, required=True)
    parser.add_argument("--minimum-cohort", type=int, default=20)
    parser.add_argument("--tor", type=Path)
    return parser.parse_args()


def _allow_many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def host(hosted: Sequence[Hosted], order: dict[str, Any], progress: HostProgress) -> dict[str, Any]:
    """Run the peers side by side until each is done; figures over all of them."""
    lives = [
        each.live(link, comes, progress)
        for each, link, comes in zip(hosted, order["links"], order["comes"], strict=True)
    ]
    return _figures([each.peer for each in hosted], await asyncio.gather(*lives))


def _settle_in(person: dict[str, Any], path: Path, way: Way, party: Party, minimum_cohort: int) -> Hosted:
    home = PeerHome(path)
    home.prepare()
    if "file" in person:
        import_file(home.data_path, Path(person["file"]), person["table"])
    else:
        import_rows(home.data_path, person["table"], person["columns"], person["rows"], durable=False)
    policy = Policy(
        lifetime=MOST, max_epsilon=MOST, minimum_cohort=minimum_cohort, minimum_window=0, limits=LIMITS
    )
    time = Timepiece(party)
    peer = PeerApp(
        home, way, time, os.urandom, sleep=time.sleep, policy=policy, evaluate=_evaluating(time), checked=_CHECKED
    )
    return Hosted(peer, time)


def _evaluating(time: Timepiece) -> Evaluate:
    """The work is done while the time stands still. Its message is taken up at the deadline, as always."""

    async def evaluate(work: Work, seconds: float) -> bytes:
        message = await at_once(work, CHILD_SECONDS)
        await time.sleep(seconds)
        return message

    return evaluate


def _figures(peers: Sequence[PeerApp], refusals: Sequence[str]) -> dict[str, Any]:
    states: Counter[str] = Counter(filter(None, refusals))
    packets: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    sent = attempts = spent = 0
    for peer in peers:
        for status in peer.status():
            states[str(status.state)] += 1
            reasons.update([status.reason] if status.reason else [])
            spent = max(spent, status.spent)
            for slot in _sent(status.slots):
                sent += 1
                attempts += slot.attempts
            packets.update(str(slot.status) for slot in status.slots)
    return {
        "peers": len(peers),
        "states": dict(states),
        "packets": dict(packets),
        "reasons": dict(reasons),
        "sent": sent,
        "attempts": attempts,
        "most_spent": spent / 1e9,
    }


def _sent(slots: Any) -> Iterator[Any]:
    yield from (slot for slot in slots if slot.attempts > 0)


if __name__ == "__main__":
    main()
