"""A node: without a yes nothing leaves; each round is charged once, whenever its process dies; the same round gets the
same bytes."""

from __future__ import annotations

import os
import signal
import struct
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from attrs import evolve

from anon.errors import Refused
from anon.ldp.epsilon import NANO
from anon.protocols.charge import Measure, Unit
from peer.ledger.declaration import Offer, OfferedArray
from peer.ledger.job_store import JobState
from peer.ledger.node import LedgerNode
from peer.rules.consent import Policy
from peer.rules.limits import BudgetLimit
from peer.run.taking_back import TakingBack
from peer.store.backup.archive import backup, restore
from peer.store.crash_points import POINTS, VARIABLE
from peer.store.home import PeerHome
from peer.store.store import Store
from tests.support.federated import known, node, offer, opened, terms
from tests.support.tries import every


def _spent(home: Path) -> int:
    entry = known(home).entry
    return 0 if entry is None else entry.spent


def test_nothing_leaves_without_a_yes(tmp_path: Path) -> None:
    here = node(tmp_path, terms(), agreed=False)
    for call in (lambda: here.begin("1"), lambda: here.finish("1", offer()), lambda: here.finish("1", None)):
        with pytest.raises(Refused, match="has not agreed"):
            call()
    assert known(tmp_path).state is JobState.ASKED and known(tmp_path).entry is None
    with opened(tmp_path) as store:
        store.agree(here.terms.job)
    assert len(here.finish("1", offer())) == 40


def test_over_budget_nothing_leaves(tmp_path: Path) -> None:
    here = node(tmp_path, terms())
    for name in "123":
        here.finish(name, offer())
    with pytest.raises(Refused, match="0 reserved"):
        here.begin("4")
    with pytest.raises(Refused, match="0 reserved"):
        here.finish("4", offer())
    assert _spent(tmp_path) == here.terms.total.amount and known(tmp_path).answered == 3


def test_one_lifetime_budget_bounds_all_jobs(tmp_path: Path) -> None:
    """The default for rho is 0.101 for one job and 0.3 in all."""
    jobs = [terms(title=str(place), rho="0.025", rounds=4) for place in range(4)]
    with pytest.raises(Refused, match="more than the 33 % allowed"):
        node(tmp_path, terms(rho="0.026", rounds=4))
    for job in jobs[:3]:
        node(tmp_path, job)
    with pytest.raises(Refused, match="0 % of it is left"):
        node(tmp_path, jobs[3])
    with opened(tmp_path) as store:
        store.refuse(jobs[0].job)
        store.agree(jobs[3].job)


def test_the_owners_limits_of_each_unit_hold(tmp_path: Path) -> None:
    of = terms(unit="record")
    with pytest.raises(Refused, match="you allow nothing"):
        node(tmp_path, of)
    with closing(Store(PeerHome(tmp_path).store_path, os.urandom)) as store:
        store.set_policy(Policy(limits=(BudgetLimit(Measure.ZCDP, Unit.RECORD, NANO, NANO),)))
    assert len(node(tmp_path, of).finish("1", offer())) == 40


def test_the_last_round_gets_the_same_bytes_and_an_earlier_one_nothing(tmp_path: Path) -> None:
    here = node(tmp_path, terms())
    first = here.finish("1", offer())
    assert here.begin("1") == here.finish("1", offer(9.0)) == here.finish("1", None) == first
    assert here.finish("2", offer()) != first
    with pytest.raises(Refused, match="a later one since"):
        here.begin("1")
    assert _spent(tmp_path) == 2 * here.terms.rho


def test_what_is_not_declared_stops_the_job_until_its_owner_answers(tmp_path: Path) -> None:
    here = node(tmp_path, terms())
    strange = Offer(dict(offer().arrays) | {"names": OfferedArray("float32", (), [1.0])})
    with pytest.raises(Refused, match="“names” is not declared"):
        here.finish("1", strange)
    with pytest.raises(Refused, match="was stopped"):
        here.finish("1", offer())
    assert _spent(tmp_path) == 0 and "names" in known(tmp_path).reason
    with opened(tmp_path) as store:
        store.agree(here.terms.job)
    assert len(here.finish("1", offer())) == 40 and known(tmp_path).reason == ""


def test_a_no_ends_a_job_and_returns_the_rest(tmp_path: Path) -> None:
    here = node(tmp_path, terms())
    here.finish("1", offer())
    with opened(tmp_path) as store:
        store.refuse(here.terms.job)
        with pytest.raises(Refused, match="answered before"):
            store.agree(here.terms.job)
    with pytest.raises(Refused, match="its owner said no"):
        here.begin("1")
    entry = known(tmp_path).entry
    assert entry is not None and (entry.reserved, entry.spent) == (0, here.terms.rho)


def test_a_paused_home_answers_nothing(tmp_path: Path) -> None:
    here = node(tmp_path, terms(), now=10.0)
    with opened(tmp_path) as store:
        store.pause(None, 11.0)
    with pytest.raises(Refused, match="paused"):
        here.finish("1", offer())
    with opened(tmp_path) as store:
        store.pause(None, None)
    here.finish("1", offer())


def test_a_relative_job_needs_what_the_server_sent(tmp_path: Path) -> None:
    here = node(tmp_path / "relative", terms(relative=True))
    with pytest.raises(Refused, match="the server sent no arrays"):
        here.finish("1", offer())
    far = {"weight": [1e6] * 6, "bias": [1e6] * 2}
    assert min(struct.unpack("<6f2d", here.finish("1", offer(), far))) > 9e5
    plain = node(tmp_path / "plain", terms()).finish("1", offer(), far)
    assert max(struct.unpack("<6f2d", plain)) < 1e3, "another job takes nothing of what the server sent"


async def test_a_restored_home_answers_no_round_that_its_original_may_have_answered(tmp_path: Path) -> None:
    here, copy = node(tmp_path / "home", terms()), tmp_path / "copy"
    first = here.finish("1", offer())
    await backup(PeerHome(here.home), tmp_path / "kept.zip")
    here.finish("2", offer())
    restore(PeerHome(copy), tmp_path / "kept.zip")
    there = LedgerNode(copy, here.terms, os.urandom, time.time)
    assert there.begin("1") == first
    with pytest.raises(Refused, match="0 reserved"):
        there.begin("2")
    assert _spent(copy) == here.terms.total.amount


async def test_a_home_that_was_moved_elsewhere_answers_nothing(tmp_path: Path) -> None:
    here = node(tmp_path / "home", terms())
    await backup(PeerHome(here.home), tmp_path / "kept.zip", final=True)
    with pytest.raises(Refused, match="moved elsewhere"):
        here.finish("1", offer())
    restore(PeerHome(tmp_path / "new"), tmp_path / "kept.zip")
    assert len(LedgerNode(tmp_path / "new", here.terms, os.urandom, time.time).finish("1", offer())) == 40


def test_erasing_everything_ends_jobs(tmp_path: Path) -> None:
    here = node(tmp_path, terms())
    here.finish("1", offer())
    home = PeerHome(tmp_path)
    with closing(Store(home.store_path, os.urandom)) as store:
        TakingBack(home, store, home.data_path, time.time, None).erase(tell=False)
    with pytest.raises(Refused, match="0 reserved"):
        here.finish("2", offer())
    assert _spent(tmp_path) == here.terms.rho


# Deaths

ITS_POINTS = [point for point in POINTS if point.endswith(("-of-release", "-of-end", "-of-policy", "-of-consent"))]


def _child(work: Callable[[], object], crash: str = "", kill_after: float | None = None) -> bool:
    """Do the work in a child; whether it was killed."""
    if (pid := os.fork()) == 0:
        status = 1
        try:
            os.environ[VARIABLE] = crash
            work()
            status = 0
        finally:
            os._exit(status)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    _, how = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(how) or os.WEXITSTATUS(how) == 0
    return os.WIFSIGNALED(how)


def _life(home: Path, wire: Path) -> None:
    """Agree, answer a round, send it, offer something strange. Each message is written down before it leaves."""
    of = terms()
    with opened(home) as store:
        store.ask(of)
        if store.jobs()[0].state is JobState.ASKED:
            store.agree(of.job)
    here = LedgerNode(home, of, os.urandom, time.time)
    with wire.open("ab") as sent:
        sent.write(here.finish("1", offer()))
    if known(home).state is JobState.AGREED:
        try:
            here.finish("2", Offer({}))
        except Refused:
            return


@pytest.mark.process
@pytest.mark.parametrize("point", ITS_POINTS)
def test_killed_at_each_point_a_round_is_charged_once_and_has_one_noise(tmp_path: Path, point: str) -> None:
    home, wire = tmp_path / "home", tmp_path / "wire"
    node(home, terms(), agreed=False)
    assert _child(lambda: _life(home, wire), point)
    _assert_once(home, wire)
    if not (_asked(home) and known(home).state is JobState.STOPPED):
        _child(lambda: _life(home, wire))
    _assert_once(home, wire)
    assert wire.read_bytes() and _spent(home) == terms().rho


@pytest.mark.process
@pytest.mark.parametrize("number", every(10, range(60)))
def test_killed_at_any_moment_a_round_is_charged_once_and_has_one_noise(tmp_path: Path, number: tuple[int]) -> None:
    home, wire, random = tmp_path / "home", tmp_path / "wire", Random(f"killed {number}")
    node(home, terms(), agreed=False)
    for _ in range(4):
        if _asked(home) and known(home).state is JobState.STOPPED:
            break
        _child(lambda: _life(home, wire), kill_after=random.random() * 0.2)
        _assert_once(home, wire)


def _asked(home: Path) -> bool:
    with opened(home) as store:
        return bool(store.jobs())


def _assert_once(home: Path, wire: Path) -> None:
    """Charges are those of the answered rounds, and all that left is the one stored message."""
    with opened(home) as store:
        found = store.jobs()
        kept = store._rows("SELECT message FROM federated_rounds") if found else []
    spent = found[0].entry.spent if found and found[0].entry is not None else 0
    assert spent == len(kept) * terms().rho and len(kept) <= 1
    left = wire.read_bytes() if wire.exists() else b""
    sent = {left[start : start + 40] for start in range(0, len(left), 40)}
    assert sent <= {bytes(row["message"]) for row in kept}


def test_a_round_that_another_answered_while_noise_was_drawn_has_that_message(tmp_path: Path) -> None:
    other = node(tmp_path / "home", terms())
    sent: list[bytes] = []

    def meanwhile(size: int) -> bytes:
        if not sent:
            sent.append(other.finish("1", offer(0)))
        return os.urandom(size)

    assert evolve(other, random_bytes=meanwhile).finish("1", offer(1)) == sent[0]
    assert _spent(other.home) == other.terms.rho


@pytest.mark.process
def test_two_processes_that_answer_one_round_send_the_same_bytes(tmp_path: Path) -> None:
    here = node(tmp_path / "home", terms())
    children = []
    for place in range(4):
        if (pid := os.fork()) == 0:
            (tmp_path / str(place)).write_bytes(here.finish("1", offer(place)))
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
    assert len({(tmp_path / str(place)).read_bytes() for place in range(4)}) == 1
    assert _spent(here.home) == here.terms.rho
