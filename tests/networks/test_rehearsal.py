"""Made-up people rehearse a study on one machine. A study that others can reach is refused, and one that is not
served."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aggregator.app import AggregatorApp
from aggregator.network.onion_address import onion_addresses
from anon.errors import Refused
from examples.rehearsal import _invited
from tests.support.command_line import anonml, attempt, finish, start
from tests.support.protocols import PROTOCOLS
from tests.support.world import study_text


@pytest.mark.parametrize(("onion", "said"), [(True, "others can reach this study"), (False, "nothing serves")])
async def test_a_study_of_others_and_one_that_nothing_serves_are_refused(
    tmp_path: Path, onion: bool, said: str
) -> None:
    async with AggregatorApp(tmp_path, processes=0) as app:
        named = onion_addresses(app.home, os.urandom) if onion else ""
        await app.create_study(PROTOCOLS.proposal(study_text()), named)
    with pytest.raises(Refused, match=said):
        await _invited(tmp_path, "", 0)


@pytest.mark.process
async def test_made_up_people_bring_a_study_to_its_report(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "study.toml"
    lengths = study_text(minimum=3).replace('"100s"', '"15s"').replace('enrol = "15s"', 'enrol = "120s"')
    file.write_text(lengths)
    await anonml("study", "publish", file, "--loopback", "--home", home)
    serving = await start("aggregator", "serve", "--until-published", "--port", "0", "--home", home)
    assert serving.stdout is not None
    while b"serving at" not in await serving.stdout.readline():
        pass
    done = await attempt("study", "rehearse", "--people", "4", "--home", home)
    assert done.code == 0 and "4 made-up people take part" in done.out and "stopped" not in done.out, done
    assert "published" in (await finish(serving)).out
    await attempt("aggregator", "report", tmp_path / "report.html", "--home", home)
    assert (tmp_path / "report.html").stat().st_size
