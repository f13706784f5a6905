"""Two whole studies by programs, a histogram and a sum with two tellers: two peers on Windows' Python beside one on
Linux, against an aggregator and tellers on Linux. One of those on Windows is killed again and again."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from anon.kit.testnet import PrivateNetwork
from anon.route.tor import TorKeeper
from peer.store.crash_points import POINTS
from tests.support.command_line import ENVIRONMENT
from tests.support.members_elsewhere import Member, Seen, demand_found_again, play
from tests.support.systems import LINUX
from tests.windows.wine import DISK, WINDOWS, booted, needs_windows

pytestmark = [pytest.mark.process, pytest.mark.timeout(1800), needs_windows]
HERE = DISK / "users" / "Änne Müller 学生" / "Anon ML #1 100%"
"""Of the first, below a user's folder on C:. The second one's is on another drive."""
LIVED = [point for point in POINTS if point.partition("-")[2] in {
    "send-of-enrolment", "commit-of-enrolment", "commit-of-evaluation", "commit-of-release", "commit-of-attempt",
    "send-of-packet", "commit-of-answer", "commit-of-end",
}]  # fmt: skip
"""The crash points of a study that goes well, as a member comes to them."""
DEATHS = ("after-send-of-enrolment", "after-commit-of-release", "after-send-of-packet")


def members(folder: Path, route: str = "auto", deaths: Sequence[str] = ()) -> list[Member]:
    """The first of two on Windows dies, and the third is on Linux."""
    return [
        Member(WINDOWS, HERE, route, deaths),
        Member(WINDOWS, folder / "second", route),
        Member(LINUX, folder / "third", route),
    ]


def played(folder: Path, deaths: Sequence[str]) -> Seen:
    """Both studies, from an empty home of the first."""
    shutil.rmtree(HERE, ignore_errors=True)
    with booted():
        return asyncio.run(play(folder, members(folder, deaths=deaths), with_sum=True))


def test_studies_of_windows_and_linux_go_from_a_file_to_packets_found_again_and_predictions(tmp_path: Path) -> None:
    """One packet each, charged once, also of a member whose programs were killed on the way. Windows predicts as Linux
    does, and names times by UTC and not by its own long names."""
    seen = played(tmp_path / "study", DEATHS)
    shutil.rmtree(HERE.parent, ignore_errors=True)
    demand_found_again(seen, 2)
    own = [found["probability"] for mine in seen.predictions for (found,) in mine[:1]]
    assert all(0 <= one <= 1 for one in own) and len(own) == 3
    assert "UTC" in "".join(seen.consents)
    assert not [text for text in seen.consents if "Standard Time" in text or "Daylight" in text]


@pytest.mark.soak
def test_a_peer_that_is_killed_at_every_point_sends_one_packet(tmp_path: Path) -> None:
    """Each death costs an interpreter on Windows: the other runs keep to three."""
    demand_found_again(played(tmp_path / "study", LIVED), 2)


@pytest.mark.soak
@pytest.mark.tor
def test_windows_takes_part_through_tor_by_the_port_of_a_tor_elsewhere(
    tmp_path: Path, private_tor: PrivateNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The aggregator is an onion service. The tor, which Windows' peers reach by its SOCKS port, is of this system."""
    for environment in (os.environ, ENVIRONMENT):
        monkeypatch.setitem(environment, "ANONML_TORRC", str(private_tor.torrc_file))

    async def through() -> Seen:
        async with TorKeeper(tmp_path / "tor") as tor:
            host, port = await tor.socks()
            study = tmp_path / "study"
            return await play(study, members(study, f"socks://{host}:{port}"), ("--onion",))

    shutil.rmtree(HERE, ignore_errors=True)
    with booted():
        demand_found_again(asyncio.run(through()), 1)
