"""The first walk of a student and of staff, with the programs that `pipx` installs from this tree's wheel.

Staff publish a study and serve it; a newcomer with an empty home and an invite link sends a packet, in Chromium; staff
write the report. Every command and every button is counted, and each of the newcomer's steps leaves a picture.
"""

from __future__ import annotations

import re
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from attrs import evolve, frozen

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from tests.docs.newcomer_walk import COLUMNS, Newcomer
from tests.docs.pictures import MOVED, OUT
from tests.docs.repository import pages
from tests.docs.staff_walk import Staff
from tests.docs.walking import ended
from tests.support.browsing import chromium, missing
from tests.support.installing import ROOT, Installed, beside_this, pipx_install, wheel

pytestmark = pytest.mark.process

MOST_STEPS, MOST_STAFF_STEPS = 5, 8
MEMBERS = 3
TOLD = {"newcomer": "docs/student/five-minutes.md", "staff": "docs/staff/first-study.md"}
"""The page that tells the steps of each."""


@frozen
class Walked:
    """The steps of newcomer and staff, and their outcome."""

    newcomer: Newcomer
    staff: Staff
    receipt: dict[str, object]
    report: str
    diagnosis: str
    ends: list[int | None]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel(tmp_path_factory.mktemp("wheel") / "built")


@pytest.fixture(scope="module")
def walked(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walked]:
    if missing():
        pytest.skip(missing())
    folder = tmp_path_factory.mktemp("newcomers")
    for name in ("student", "staff"):
        (folder / name).mkdir()
    newcomer = Newcomer(folder / "student", MEMBERS)
    with ThreadPoolExecutor() as threads, ExitStack() as stack:
        installing = threads.submit(beside_this, folder / "staff", built)
        peer = newcomer.install(built)
        staff = Staff(installing.result(), MEMBERS)
        began = time.monotonic()
        homes = list(threads.map(lambda number: _settled_in(peer, folder, number), range(1, MEMBERS)))
        slowness = max(1.0, (time.monotonic() - began) / 2)
        browser = stack.enter_context(chromium(folder / "profile"))
        stack.callback(lambda: ended(staff.serving))
        first, *others = staff.open_study(slowness)
        living = [threads.submit(_live, home, link) for home, link in zip(homes, others, strict=True)]
        stack.callback(lambda: ended(newcomer.page))
        newcomer.take_part(peer, first, browser)
        receipt = newcomer.sent(peer, browser)
        report = staff.report()
        _all(living)
        newcomer.picture_of_terminal(browser)
        ends = [ended(newcomer.page), ended(staff.serving)]
        yield Walked(newcomer, staff, receipt, report, peer.run("anonml", "doctor"), ends)


def _settled_in(peer: Installed, folder: Path, number: int) -> Installed:
    """Another member, at a terminal, on the same machine."""
    home = folder / f"member-{number}"
    home.mkdir()
    other = evolve(peer, home=home)
    (home / "person.csv").write_text(f"{COLUMNS}\n{20 * number},never,{number % 2}\n")
    other.run("anonml", "peer", "import", "person.csv", "--table", "person")
    other.run("anonml", "peer", "budget", "--minimum-cohort", str(MEMBERS))
    return other


def _live(other: Installed, link: str) -> None:
    other.run("anonml", "peer", "join", link, "--yes")
    other.run("anonml", "peer", "run", "--once", "--max-seconds", "200")


def _all(works: list[Future[None]]) -> None:
    for work in works:
        work.result()


@pytest.mark.browser
def test_a_newcomer_sends_a_packet_in_five_steps(walked: Walked) -> None:
    steps = walked.newcomer.steps.done
    assert len(steps) <= MOST_STEPS, steps
    assert steps[0] == "pipx install" and steps[1].startswith("anonml peer open anonml://")
    assert steps[-1] == "Yes, take part"
    assert walked.receipt["word"] == "accepted" and walked.receipt["epsilon"] == 2.0


@pytest.mark.browser
def test_staff_publish_a_report_in_eight_steps_from_study_init(walked: Walked) -> None:
    steps = walked.staff.steps.done
    assert steps[0].startswith("anonml study init") and steps[-1].startswith("anonml aggregator report")
    assert len(steps) <= MOST_STAFF_STEPS, steps
    assert ": published" in walked.staff.said and "Course dropout" in walked.report
    assert f"{MEMBERS}" in walked.report


@pytest.mark.browser
def test_both_programs_end_with_control_c_in_order(walked: Walked) -> None:
    assert all(code in (0, 130) for code in walked.ends), walked.ends
    assert "Traceback" not in walked.staff.said + (walked.newcomer.home / "page.log").read_text()


@pytest.mark.browser
@pytest.mark.parametrize("whose", TOLD)
def test_the_page_tells_the_very_steps(walked: Walked, whose: str) -> None:
    """Every command and every button, in the order in which they were needed."""
    page, place = (ROOT / TOLD[whose]).read_text("utf-8"), 0
    for step in getattr(walked, whose).steps.done:
        named = re.sub(r" anonml://.*| --(port|count) \d+|^edit ", "", step)
        place = page.find(named, place)
        assert place >= 0, f"{TOLD[whose]} does not name {named!r} at its place"


def _shown() -> list[str]:
    """The pictures that pages show."""
    shown = [name for path in pages() for name in re.findall(r"pictures/([\w-]+\.png)", path.read_text("utf-8"))]
    return [*shown, *(f"{name}.png" for name in MOVED)]


def test_the_pictures_are_there_and_small() -> None:
    kept = {one.name: one for one in (ROOT / "docs" / "pictures").glob("*.png")}
    assert len(kept) >= 5 and set(_shown()) == set(kept)
    assert all(one.stat().st_size < 120_000 for one in kept.values())


@pytest.mark.browser
def test_the_run_made_every_picture_of_steps(walked: Walked) -> None:
    assert {name for name in _shown() if name.startswith("step-")} <= {one.name for one in OUT.iterdir()}


@pytest.mark.browser
def test_the_doctor_says_what_else_to_install_whole(walked: Walked) -> None:
    """The newcomer's machine has no parts of the aggregator; what to install is not taken for markup."""
    assert "pipx install --force './anonml-0.1.0-py3-none-any.whl[aggregator]'" in walked.diagnosis


def test_the_wheel_holds_every_file_of_the_packages(built: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        held = set(archive.namelist())
    source = built.parents[1] / "source"
    parts = [path for part in ("anon", "peer", "aggregator") for path in (source / part).rglob("*") if path.is_file()]
    assert {str(path.relative_to(source)) for path in parts} - held == set()


@pytest.mark.soak
def test_staff_install_everything_by_pipx(built: Path, tmp_path: Path) -> None:
    staff = pipx_install(tmp_path, built, "[aggregator]")
    staff.run("anonml", "study", "init", "study.toml")
    assert "can be published" in staff.run("anonml", "study", "lint", "study.toml")
