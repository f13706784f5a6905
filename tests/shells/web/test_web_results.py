"""The page shows the prediction computed on this machine and kept proofs, and runs the studies beside itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from attrs import evolve

from anon.errors import Refused
from anon.protocols.models.belief import Belief
from anon.protocols.models.tables import from_json
from anon.text.sentences import say
from anon.transparency.documents import sign_head
from anon.transparency.equivocation import parse_evidence
from peer.data.importing import import_rows
from peer.rules.lifecycle import State
from peer.run.supervisor import Running, Supervisor
from peer.web.site import LIVE
from tests.support.browsing_model import model_of
from tests.support.fake_aggregator import until_closed, until_state
from tests.support.linear import CLASS, NUMBER
from tests.support.patience import turns, until
from tests.support.visiting import Visited, visited


async def joined(page: Visited) -> None:
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    await page.submit(page.invite, page.invite, answer="yes")


# Prediction


async def _predicted(page: Visited) -> str:
    place = page.study + "/prediction"
    got = await page.submit(place, place)
    return (await page.get(place)).words if got.status == 200 else got.words


async def test_the_prediction_is_computed_here_with_what_moved_it(page: Visited) -> None:
    await joined(page)
    page.aggregator.publish("model", model_of(page.aggregator.study.hex()))
    asked = len(page.aggregator.gets)
    words = await _predicted(page)
    assert "score for you is 24.1 %" in words and "from 40.0 % on" in words and " no " in words
    assert "“age” towards no (-0.40)" in words and "“cups” towards yes (+0.10)" in words
    assert words.index("“age” towards") < words.index("“cups” towards")  # the larger first
    fetched = page.aggregator.gets[asked:]
    assert {what for what, _at in fetched} <= {"heads/opening", "documents/1"} and page.aggregator.posts == []
    import_rows(page.home.data_path, "person", ("age", "cups", "tired"), [(61, "many", 1)])
    again = (await page.get(page.study + "/prediction")).words
    # Nothing is fetched again.
    assert "score for you is 83.9 %" in again and len(page.aggregator.gets) == asked + len(fetched)


async def test_a_declared_rule_says_how_much_was_heard(page: Visited) -> None:
    await joined(page)
    belief = Belief(2, 0.12, 90, 0.4, False, 1600)
    model = evolve(from_json(model_of(page.aggregator.study.hex()).decode()), belief=belief)
    page.aggregator.publish("model", model.to_json().encode())
    words = await _predicted(page)
    assert "Of the differences that this model sees between people, 88 % follow from what staff declared" in words
    assert "12 % from the answers of 90 members" in words and "is wrong as a whole: about" in words


async def test_a_linear_model_tells_a_class_or_a_number(page: Visited) -> None:
    await joined(page)
    import_rows(page.home.data_path, "person", ("age", "cups", "tired"), [(60, 2, 1)])
    own = {"study": page.aggregator.study.hex()}
    page.aggregator.publish("model", evolve(NUMBER, **own).to_json().encode())
    words = await _predicted(page)
    assert "10 The number that the model predicts for you: “sleep”." in words and "“age” up (+0.75)" in words
    assert "score for you" not in words


async def test_a_linear_model_of_a_class_has_a_score(page: Visited) -> None:
    await joined(page)
    import_rows(page.home.data_path, "person", ("age", "cups", "tired"), [(60, 2, 1)])
    page.aggregator.publish("model", evolve(CLASS, study=page.aggregator.study.hex()).to_json().encode())
    words = await _predicted(page)
    assert "score for you is 73.1 %" in words and "“age” towards yes (+0.75)" in words


async def test_before_a_model_is_published_it_says_so_and_can_be_asked_again(page: Visited) -> None:
    await joined(page)
    assert "No model is published yet" in await _predicted(page)
    page.aggregator.publish("model", model_of(page.aggregator.study.hex()))
    assert "score for you" in await _predicted(page)


async def test_a_silent_aggregator_is_asked_again_by_the_same_button(page: Visited) -> None:
    await joined(page)
    page.aggregator.publish("model", model_of(page.aggregator.study.hex()))
    place = page.study + "/prediction"
    page.aggregator.deaf.add("heads")
    failed = await page.submit(place, place)
    assert failed.status == 502 and "Try again" in failed.words
    page.aggregator.deaf.clear()
    await page.post(place, failed.form(place))
    assert "score for you" in (await page.get(place)).words


@pytest.mark.parametrize(("shown", "warned"), [(True, False), (False, True), (None, False)])
async def test_a_model_that_was_not_shown_to_beat_guessing_says_so_first(
    page: Visited, shown: bool | None, warned: bool
) -> None:
    await joined(page)
    model = evolve(
        from_json(model_of(page.aggregator.study.hex()).decode()), chance=0.004 if shown else 0.31, shown=shown
    )
    page.aggregator.publish("model", model.to_json().encode())
    words = await _predicted(page)
    assert ("did not show that this model is better than a guess" in words) is warned
    if warned:
        assert words.index("31 of 100 such studies") < words.index("score for you")


async def test_nothing_is_fetched_by_looking(page: Visited) -> None:
    await joined(page)
    before = len(page.aggregator.gets)
    assert "Nobody else sees it" in (await page.get(page.study + "/prediction")).words
    assert len(page.aggregator.gets) == before


async def test_what_the_model_reads_and_the_data_lack_is_named(tmp_path: Path) -> None:
    async with visited(tmp_path, data=False) as page:
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        await page.submit(page.invite, page.invite, answer="yes", unready="person")
        page.aggregator.publish("model", model_of(page.aggregator.study.hex()))
        words = await _predicted(page)
        assert "reads the table “person”, which is not there" in words and "no such table" not in words
        assert "No answer" in words and "says nothing about you" in words and "score for you" not in words


# Evidence


async def test_a_kept_proof_can_be_saved_and_checked_by_anyone(page: Visited) -> None:
    await joined(page)
    await until_closed(page.peer, page.aggregator)
    first = list(page.aggregator.chain)
    await until_state(page.peer, page.aggregator, State.CHECKED)
    page.aggregator.chain[:] = first[:1]
    for one in first[1:]:
        page.aggregator.chain.append(
            sign_head(
                page.aggregator.key,
                page.aggregator.study,
                page.aggregator.chain,
                one.head.kind,
                one.head.part,
                b"another",
            )
        )
    for _ in range(50):
        due = await page.peer.step(page.aggregator.study)
        if due is None:
            break
        page.aggregator.clock.seconds = max(page.aggregator.clock(), due)
    assert page.peer.store.state(page.aggregator.study) is State.STOPPED
    shown = await page.get("/evidence")
    assert "Sleep and coffee" in shown.words and "Save the proof" in shown.words
    saved = await page.get("/evidence/0")
    assert saved.headers["Content-Disposition"].startswith("attachment") and saved.body
    assert parse_evidence(saved.body).study == page.aggregator.study
    assert "Stopped" in (await page.get("/history")).words


# Running beside the page


async def test_the_studies_run_in_this_process_and_a_yes_is_taken_up(page: Visited) -> None:
    """On a real clock: the page's yes leaves by itself."""
    real = _real(page)
    supervisor = Supervisor(page.peer.run, 0.05)
    page.server.site.supervisor = supervisor
    task = asyncio.create_task(supervisor.run())
    try:
        await joined(page)
        await until(lambda: len(page.aggregator.sent("enrol")) == 1)
        assert supervisor.running is Running.HERE and "Running." in (await page.get("/")).words
        assert "your studies are being run" in (await page.get("/diagnosis")).words.partition("In order")[2]
        with pytest.raises(Refused, match="another process"), page.home.running():
            pass
    finally:
        await _ended(task)
    assert real


async def test_when_another_process_runs_the_home_the_page_says_so_and_takes_over(page: Visited) -> None:
    _real(page)
    supervisor = Supervisor(page.peer.run, 0.05)
    page.server.site.supervisor = supervisor
    with page.home.running():
        task = asyncio.create_task(supervisor.run())
        await until(lambda: supervisor.running is Running.ELSEWHERE)
        assert "Another process on this machine runs your studies" in (await page.get("/")).words
        await joined(page)  # still decided here: the other process takes it up
        assert page.aggregator.posts == []
    await until(lambda: len(page.aggregator.sent("enrol")) == 1)
    assert supervisor.running is Running.HERE
    await _ended(task)


async def test_a_fault_is_said_with_what_to_do_and_the_run_goes_on_after_it(page: Visited) -> None:
    _real(page)
    supervisor = Supervisor(page.peer.run, 0.05)
    page.server.site.supervisor = supervisor
    good, broken = page.peer._route_factory, []

    def refused() -> object:
        broken.append(1)
        raise Refused(say("tor is missing: install it"))

    await joined(page)
    page.peer._route_factory = refused  # type: ignore[assignment]
    task = asyncio.create_task(supervisor.run())
    await until(lambda: page.peer.status()[0].reason)
    assert "Cannot go on: tor is missing: install it; it is tried again by itself" in (await page.get("/")).words
    assert "Do this: tor is missing: install it" in (await page.get("/diagnosis")).words
    page.peer._route_factory = good
    page.aggregator.clock.seconds += 60
    await until(lambda: len(page.aggregator.sent("enrol")) == 1)
    assert supervisor.running is Running.HERE
    assert "tor is missing" not in (await page.get("/diagnosis")).words
    await _ended(task)


async def test_a_pause_holds_the_run_and_going_on_lets_it_go(page: Visited) -> None:
    _real(page)
    await joined(page)
    await page.submit("/", "/pause", seconds="3600")
    supervisor = Supervisor(page.peer.run, 0.05)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: supervisor.running is Running.HERE)
    await turns()
    assert page.aggregator.posts == []
    await page.submit("/", "/resume")
    await until(lambda: len(page.aggregator.sent("enrol")) == 1)
    await _ended(task)


async def test_a_notice_waits_for_the_page_that_says_it_and_is_said_once(page: Visited) -> None:
    """The script of an open page looks again by itself, also between a form and the page that follows it."""
    await joined(page)
    await page.submit("/", "/pause", seconds="3600")
    form = (await page.get("/")).form("/resume")
    headers = {"Origin": page.server.address, "Sec-Fetch-Site": "same-origin"}
    await page._got("POST", "/resume", data=form, headers=headers, allow_redirects=False)
    assert "Not paused any more" not in (await page.get("/", **{LIVE: "1"})).words
    assert "Not paused any more" in (await page.get("/")).words
    assert "Not paused any more" not in (await page.get("/")).words


def _real(page: Visited) -> bool:
    """Sleeps of the peer take real, short times; its clock stands."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.02))

    page.peer._following._sleep = sleep
    return True


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
