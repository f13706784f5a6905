"""Many real peers in one process: each with its own keys, ledger, store, data and consent policy. For demos and tests.

    python -m examples.hosting --people people.jsonl --homes DIR [--tor DIR]

A line of `people.jsonl` is one peer: {"table": name, and either "columns" and "rows", or "file"}. Every peer's home is
made and its data imported first; then one line says how many, and one line of JSON is read from standard input:
{"links": [one invite link per peer], "seconds": how long to run}. The owner's yes is given by the policy: up to
`--consent`. With `--tor` all peers of the process share one tor, which is kept in that folder: each exchange has a
circuit of its own, and the figures say how many tor reported.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from anon.errors import AnonmlError
from anon.ldp import nano
from anon.route import DirectRoute, Route
from anon.route.tor import TorKeeper
from anon.transparency.closing import CheckedLists
from anon.wire.invite import parse_invite
from examples.circuits import CircuitLog, WatchedRoute, negative_control
from peer.app import PeerApp
from peer.data.importing import import_file, import_rows
from peer.rules.consent import Policy
from peer.store.home import PeerHome, Settings

AT_ONCE = 12
EXCHANGES = 32
"""Most exchanges of one process through tor at once."""
_CHECKED = CheckedLists()
"""The peers of one process check the one public list of credentials once."""


@frozen
class Hosting:
    """How the peers of one process are run. Seconds; `consent` is an epsilon."""

    homes: Path
    consent: float
    spread: float
    minimum_cohort: int


def main() -> None:
    """Host every peer of the file, then print one JSON line of what became of them."""
    options = _options()
    _allow_many_files()
    with options.people.open(encoding="utf-8") as lines:
        people = [json.loads(line) for line in lines]
    hosting = Hosting(options.homes, options.consent, options.spread, options.minimum_cohort)
    way = Way()
    peers = [_settle_in(person, hosting.homes / f"{number:05d}", hosting, way) for number, person in enumerate(people)]
    _say({"settled": len(peers)})
    order = json.loads(sys.stdin.readline())
    with suppress(KeyboardInterrupt):
        _say(asyncio.run(_hosted(peers, order, hosting, way, options.tor)))


async def _hosted(
    peers: list[PeerApp], order: dict[str, Any], hosting: Hosting, way: Way, tor: Path | None
) -> dict[str, Any]:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _stop, asyncio.current_task())
    if tor is None:
        return await host(peers, order["links"], hosting, order["seconds"])
    async with TorKeeper(tor) as keeper:
        log = CircuitLog()
        await keeper.socks()
        assert keeper.tor is not None
        async with log.following(keeper.tor.controller):
            way.route = WatchedRoute(keeper, asyncio.Semaphore(EXCHANGES), log)
            figures = await host(peers, order["links"], hosting, order["seconds"])
            invite = parse_invite(order["links"][0])
            path = f"/v1/{invite.study.hex()}/heads"
            return figures | await log.figures() | await negative_control(keeper, log, invite.address, path)


def _stop(task: asyncio.Task[Any] | None) -> None:
    if task is not None:
        task.cancel()


@define
class Way:
    """The route that all peers of the process take, known once tor is up."""

    route: Route = field(factory=DirectRoute)

    def __call__(self) -> Route:
        """The route of an exchange."""
        return self.route


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, sort_keys=True) + "\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=Path, required=True)
    parser.add_argument("--homes", type=Path, required=True)
    parser.add_argument("--consent", type=float, default=10.0)
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--minimum-cohort", type=int, default=20)
    parser.add_argument("--tor", type=Path)
    return parser.parse_args()


def _allow_many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def host(peers: list[PeerApp], links: list[str], hosting: Hosting, seconds: float) -> dict[str, Any]:
    """Run the peers side by side until each is done or the time is up; figures over all of them."""
    gate = asyncio.Semaphore(AT_ONCE)
    deadline = time.time() + seconds
    started = time.perf_counter()
    outcomes = await asyncio.gather(
        *(_live(peer, link, hosting, gate, deadline) for peer, link in zip(peers, links, strict=True))
    )
    return _figures(outcomes, time.perf_counter() - started)


async def _live(peer: PeerApp, link: str, hosting: Hosting, gate: asyncio.Semaphore, deadline: float) -> PeerApp | str:
    """One peer's life in a study: look, say yes, run."""
    async with gate:
        try:
            invite = parse_invite(link)
            await peer.look(invite)
            await peer.join(invite, nano(hosting.consent))
        except AnonmlError as refused:
            return f"not joined: {refused.code}"
    await peer.run(max(0.0, deadline - time.time()), once=True)
    return peer


def _settle_in(person: dict[str, Any], path: Path, hosting: Hosting, way: Way) -> PeerApp:
    home = PeerHome(path)
    home.prepare()
    home.write_settings(Settings(enrol_spread=hosting.spread))
    if "file" in person:
        import_file(home.data_path, Path(person["file"]), person["table"])
    else:
        import_rows(home.data_path, person["table"], person["columns"], person["rows"], durable=False)
    epsilon = nano(hosting.consent)
    policy = Policy(
        lifetime=epsilon, max_epsilon=epsilon, minimum_cohort=hosting.minimum_cohort, minimum_window=0
    )
    return PeerApp(home, way, time.time, os.urandom, policy=policy, checked=_CHECKED)


def _figures(outcomes: Sequence[PeerApp | str], seconds: float) -> dict[str, Any]:
    states: Counter[str] = Counter()
    packets: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    sent = attempts = spent = 0
    for one in outcomes:
        if isinstance(one, str):
            states[one] += 1
            continue
        for status in one.status():
            states[str(status.state)] += 1
            reasons.update([status.reason] if status.reason else [])
            spent = max(spent, status.spent)
            for slot in _sent(status.slots):
                sent += 1
                attempts += slot.attempts
            packets.update(str(slot.status) for slot in status.slots)
    return {
        "peers": len(outcomes),
        "states": dict(states),
        "packets": dict(packets),
        "reasons": dict(reasons),
        "sent": sent,
        "attempts": attempts,
        "most_spent": spent / 1e9,
        "seconds": round(seconds, 1),
    }


def _sent(slots: Any) -> Iterator[Any]:
    yield from (slot for slot in slots if slot.attempts > 0)


if __name__ == "__main__":
    main()
