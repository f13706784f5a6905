"""The owner's page and terminal: a federated job is read before it is answered, and the budget shows what it holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import anonml
from peer.ledger import page as federated
from peer.ledger.job_store import JobState
from peer.ledger.node import LedgerNode
from peer.store.home import PeerHome
from tests.support.federated import TERMS, known, offer, opened, terms
from tests.support.visiting import visited

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
async def test_a_job_is_read_and_answered_on_the_page(tmp_path: Path) -> None:
    of = terms(title="Hearts & <b>minds</b>")
    place = f"/federated/{of.job.hex()}"
    async with visited(tmp_path, guests=(federated.routes,), asking=(federated.asking,)) as page:
        assert "Jobs of other programs" not in (await page.get("/")).words
        assert "There is no such job here" in (await page.get("/federated")).words
        with opened(tmp_path) as store:
            store.ask(of)
        got = await page.get("/")
        assert "Hearts & <b>minds</b>" in got.words and 'href="/federated"' in got.text
        got = await page.get("/federated")
        for said in ("waits for your answer", "a hospital", "0 of 3", "8 numbers", "epsilon 0.9", "epsilon 1.63"):
            assert said in got.words
        assert "<b>minds" not in got.text
        got = await page.submit("/federated", f"{place}/yes")
        assert "Agreed." in got.words and "You said yes" in got.words and f"{place}/yes" not in got.text
        assert known(tmp_path).state is JobState.AGREED
        LedgerNode(tmp_path, of, os.urandom, lambda: 0.0).finish("1", offer())
        assert "1 of 3" in (await page.get("/federated")).words
        budget = (await page.get("/budget")).words
        assert "epsilon 0.9 spent, 1.31 reserved" in budget and "Hearts & <b>minds</b>" in budget, budget
        assert "the promise holds if" not in budget
        got = await page.submit("/federated", f"{place}/no")
        assert "Nothing more leaves for it" in got.words and known(tmp_path).state is JobState.ENDED
        assert "1.31 reserved" not in (await page.get("/budget")).words


async def test_a_job_beyond_the_owners_limits_is_refused_with_the_limit(tmp_path: Path) -> None:
    of = terms(rho="0.05")
    async with visited(tmp_path, guests=(federated.routes,), asking=(federated.asking,)) as page:
        with opened(tmp_path) as store:
            store.ask(of)
        got = await page.submit("/federated", f"/federated/{of.job.hex()}/yes")
        assert "more than the 33 % allowed for one study" in got.words
        assert known(tmp_path).state is JobState.ASKED and known(tmp_path).entry is None
        form = (await page.get("/federated")).form(f"/federated/{of.job.hex()}/no")
        assert (await page.post("/federated/00/yes", form)).status == 400


def _told(*arguments: str, answer: str = "") -> str:
    done = CliRunner().invoke(anonml.application("peer"), ["federated", *arguments], answer)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return " ".join(done.output.split())


@pytest.mark.slow
def test_a_job_is_read_and_answered_in_the_terminal(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    assert "no federated job asks here" in _told(*home)
    file = tmp_path / "job.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in TERMS.items() if not isinstance(value, dict)]
    lines += ["[arrays]", "weight = {shape = [2, 3]}", 'bias = {shape = [2], dtype = "float64"}']
    file.write_text("\n".join([*lines, "[constants]", "num-examples = 1"]), "utf-8")
    told = _told(str(file), *home, answer="n\n")
    assert "a hospital" in told and "8 numbers" in told and "epsilon 1.63" in told and "not agreed" in told
    assert known(tmp_path / "home").state is JobState.ASKED
    assert "`anonml peer federated --job" in _told(*home)
    assert "agreed;" in _told("--job", terms().job.hex()[:6], *home, answer="y\n")
    [shown] = json.loads(_told("--json", *home))
    assert shown["state"] == "agreed" and shown["reserved"] == 0.06 and shown["epsilon_total"] == 1.63
    assert "0 of 3 rounds answered" in _told(*home)
    assert "is back" in _told("--no", *home) and known(tmp_path / "home").state is JobState.ENDED


def test_no_file_is_a_clear_error(tmp_path: Path) -> None:
    from anon.errors import Malformed

    with pytest.raises(Malformed, match="no such file"):
        _told(str(tmp_path / "none.toml"), "--home", str(tmp_path))


def test_a_home_without_jobs_has_no_table_for_them(tmp_path: Path) -> None:
    PeerHome(tmp_path).prepare()
    with opened(tmp_path) as store:
        assert store.jobs() == [] and federated.asking(tmp_path) == []
        assert not store._rows("SELECT name FROM sqlite_master WHERE name LIKE 'federated%'")


ROLES = """
import sys, anonml, peer.app, peer.network.routes, aggregator.app, anon.teller.service
for command, name in (("peer", "run"), ("peer", "join"), ("aggregator", "serve"), ("teller", "serve")):
    anonml.application(command, name)
print(sorted(name for name in sys.modules if name.startswith(("peer.ledger", "flwr", "nvflare"))))
import peer.ledger, peer.ledger.page, peer.ledger.cli
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("flwr", "nvflare", "ray")))
"""


@pytest.mark.process
def test_no_role_loads_the_ledger_in_its_own_work_and_the_page_no_framework() -> None:
    program = [sys.executable, "-c", ROLES]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
