"""The demo's aggregator: the program that `anonml aggregator serve` runs, on the demo's virtual clock.

    python -m examples.serving --home DIR --clock FILE --keeper SOCKET [--sight FILE] [--onion]

Standard input gives one line of JSON: {"study": the path of a study file, "invites": how many, "title": another one
than the file's, or empty}. The first line on standard output has the study's words and the links. Each further one
says that the study has another phase, or cannot go on. `--sight` names the file for what somebody who watches sees of
the study. Tellers of a study that is broken off hear that it is over.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import evolve

from aggregator.app import AggregatorApp
from aggregator.opening import study_status
from aggregator.protocols.installed import PROTOCOLS
from aggregator.study.live import LiveStudy
from aggregator.study.status import CLOSED, status_of
from aggregator.tellers.publishing import give_up
from aggregator.tellers.study_tellers import links_of
from anon.errors import AnonmlError
from anon.serving.onion_key import keep_keys
from anon.study.given import read_given
from anon.study.manifest import Manifest, Survey
from anon.transparency.fingerprint import words
from examples.clock import Party, Shifts
from examples.progress import keep_sight

DAY = 86400.0
PHASE_SECONDS = 0.2
SIGHT_SECONDS = 2.0
"""Real seconds between two looks at the study, for who watches."""


def main() -> None:
    """Serve until stopped."""
    options = _options()
    order = json.loads(sys.stdin.readline())
    study = Path(order["study"])
    party = Party(options.clock, options.keeper, bars=True)
    with asyncio.Runner(loop_factory=party.loop) as runner, suppress(asyncio.CancelledError, KeyboardInterrupt):
        try:
            runner.run(_serve(options, party, order, study))
        except AnonmlError as refused:
            sys.exit(str(refused))
    party.over()


async def _serve(options: argparse.Namespace, party: Party, order: dict[str, Any], study: Path) -> None:
    home, draw = options.home, secrets.token_bytes
    async with AggregatorApp(home, party, draw, sleep=Shifts(party).sleep, look_seconds=DAY) as aggregator:
        written = PROTOCOLS.load_proposal(study)
        proposal = evolve(written, title=order["title"] or written.title)
        onions = keep_keys(options.home, os.urandom, 0) if options.onion else ()
        named = " ".join(onion.address() for onion in onions)
        manifest = await aggregator.create_study(proposal, named, read_given(proposal.given, study.parent))
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if onions:
            answering = aggregator.serve_onion(lambda home: onions, address.set_result)
        else:
            answering = aggregator.serve("127.0.0.1", 0, lambda port: address.set_result(f"127.0.0.1:{port}"))
        serving = asyncio.ensure_future(answering)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
        live = aggregator.study(manifest.study_id)
        telling = asyncio.ensure_future(_tell(aggregator, live, address, order["invites"], options.sight))
        opening = asyncio.ensure_future(until_each_opens(party, manifest))
        async with _over_for_tellers(aggregator, live):
            done, others = await asyncio.wait({serving, telling}, return_when=asyncio.FIRST_COMPLETED)
            others.add(opening)
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            for task in done:
                task.result()


@asynccontextmanager
async def _over_for_tellers(aggregator: AggregatorApp, live: LiveStudy) -> AsyncIterator[None]:
    """At the end of the block the study's tellers know that it is over, as far as they answer."""
    try:
        yield
    finally:
        if live.tellers is not None and not live.tellers.finished:
            arrangement = live.tellers.arrangement
            await give_up(links_of(arrangement, aggregator.link_to), arrangement, live.study)


async def until_each_opens(party: Party, manifest: Manifest) -> None:
    """Be due whenever a window opens. A peer that runs ahead would else send before the aggregator's clock is there."""
    for opens in sorted({survey.window.opens for survey in manifest.surveys}):
        await party.until(opens)


async def _tell(
    aggregator: AggregatorApp, live: LiveStudy, address: asyncio.Future[str], invites: int, sight: Path | None
) -> None:
    drawn = await aggregator.create_invites(live.study, invites, await address)
    _say({"words": words(live.study), "links": [invite.link() for invite in drawn]})
    await asyncio.gather(_phases(live), *([_sights(live, sight)] if sight else []))


async def _phases(live: LiveStudy) -> None:
    """A line for each phase, and for each reason why the study does not go on. Nothing here asks the database while
    both stay."""
    said = None
    while True:
        if (live.state, live.trouble) != said:
            said = live.state, live.trouble
            status = await status_of(live, "")
            _say(study_status(status) | {"packet_answers": status.packet_answers, "fault": status.fault})
        await asyncio.sleep(PHASE_SECONDS)


async def _sights(live: LiveStudy, sight: Path) -> None:
    """Keep what a watcher is shown."""
    while True:
        shown = await _bars(live) if live.phase not in CLOSED else {}
        if shown:
            keep_sight(sight, shown)
        await asyncio.sleep(SIGHT_SECONDS)


async def _bars(live: LiveStudy) -> dict[str, Any]:
    """The estimate of the study's last survey from the packets that are there by now, with its errors."""
    survey = _drawn(live)
    if survey is None:
        return {}
    documents, tally = await live.round_documents(), await live.tally_of(survey.survey)
    found = live.protocol_part.estimate(live.manifest, survey, documents, tally, final=True)
    if found is None:
        return {}
    rows = [{"name": row.name, "share": row.share, "error": row.error} for row in found.rows]
    return {"title": found.title, "reports": found.reports, "rows": rows}


def _drawn(live: LiveStudy) -> Survey | None:
    """The survey with the fewest categories among those that are asked last: its bars are the easiest to see."""
    asked = [survey for survey in live.manifest.surveys if survey.window == live.manifest.surveys[-1].window]
    histograms = [survey for survey in asked if survey.kind == "histogram"]
    return min(histograms, key=lambda survey: survey.m, default=None)


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, sort_keys=True) + "\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--clock", type=Path, required=True)
    parser.add_argument("--keeper", type=Path, required=True)
    parser.add_argument("--sight", type=Path)
    parser.add_argument("--onion", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
