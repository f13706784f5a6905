"""`anonml teller status` at each stage of a sum: what was accepted, also when the shares are gone, and what lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from anon.ldp import format_epsilon
from anon.protocols.cost_words import epsilon_of
from anon.sharing.statements import Disagreed
from anon.study.manifest import parse_manifest
from anon.study.proposal import REHEARSAL
from anon.teller.cli import COST, _epsilons, _lines
from anon.teller.home import DATABASE
from anon.teller.overview import OVER, StudyOverview, by_time, overview
from anonml import wiring
from tests.support.spare import spared
from tests.support.sums import RULE, TABLES, manifest_of

AB = 0


def _seen(folder: Path) -> str:
    """The sum of the first pair, as the first teller tells of it."""
    return next(study.sums[0].said for study in overview(folder / "0" / DATABASE) if study.fellow == "teller 1")


def test_what_was_accepted_is_said_from_the_first_packet_to_the_end(tmp_path: Path) -> None:
    world = spared(tmp_path)
    others = "waits for packets, until the last member may have answered"
    assert _seen(tmp_path) == f"round 1: waiting; packets taken 0, accepted 0; {others}"
    statements = world.admit(AB, packets := world.packets())
    found = "waits for what “teller 1” found in 4 packets"
    assert _seen(tmp_path) == f"round 1: taking packets; packets taken 4, accepted 0; {found}"
    body = world.list_of(AB, world.settle(AB, statements) - {packets[0].tag})
    made = "waits for the list of packets, which the staff's program makes"
    assert _seen(tmp_path) == f"round 1: taking packets; packets taken 4, accepted 4; {made}"
    world.tellers[0].sign_list(world.at(AB), body)
    signed = "waits for the signature of “teller 1” under the list"
    assert _seen(tmp_path) == f"round 1: list signed; packets taken 4, accepted 3; {signed}"
    world.finished(AB, body)
    assert _seen(tmp_path) == "round 1: done; packets accepted 3"
    world.tellers[0].finish(world.at(AB).study, 0)
    assert _seen(tmp_path) == "round 1: done; packets accepted 3"


def test_a_study_that_is_over_without_a_sum_claims_no_count(tmp_path: Path) -> None:
    world = spared(tmp_path)
    world.settle(AB, world.admit(AB, world.packets()))
    world.tellers[0].finish(world.at(AB).study, 0)
    assert _seen(tmp_path) == "round 1: ended without a sum; a list of enough packets never came"


def test_two_lists_and_who_signed_them_are_named(tmp_path: Path) -> None:
    world = spared(tmp_path)
    accepted = world.settle(AB, world.admit(AB, world.packets()))
    world.tellers[0].sign_list(world.at(AB), world.list_of(AB, accepted))
    other = world.tellers[1].sign_list(world.at(AB), world.list_of(AB, frozenset(sorted(accepted)[1:])))
    with pytest.raises(Disagreed):
        world.tellers[0].add_noise(world.at(AB), [other])
    named = "two lists were signed by “teller 0” and “teller 1”"
    assert _seen(tmp_path) == f"round 1: stopped: tellers disagree; packets accepted 4; {named}"


def test_a_list_that_the_other_teller_never_signed_is_said_when_all_is_over(tmp_path: Path) -> None:
    world = spared(tmp_path)
    world.tellers[0].sign_list(world.at(AB), world.accepted(AB, world.packets()))
    for end in (1_700_000_000, 1_700_000_010):
        world.tellers[0].finish(world.at(AB).study, end)
    ends = {(study.stage, study.ended) for study in overview(tmp_path / "0" / DATABASE)}
    assert ends == {(OVER, 1_700_000_000)}, "of both pairs, and the first end counts"
    assert _seen(tmp_path).endswith("; the signature of “teller 1” under the list never came")


def test_studies_that_run_come_first_and_the_newest_of_each_kind_before_the_others(tmp_path: Path) -> None:
    spared(tmp_path)
    study = overview(tmp_path / "0" / DATABASE)[0]

    def at(published: int, stage: str) -> StudyOverview:
        timetable = evolve(study.manifest.timetable, published=study.manifest.timetable.published - published)
        return evolve(study, stage=stage, manifest=evolve(study.manifest, timetable=timetable))

    old, new = at(90, "running"), at(10, "countersigned")
    older_over, over = at(80, OVER), at(0, OVER)
    assert by_time([older_over, old, over, new]) == [new, old, over, older_over]


def test_a_staffs_clock_that_runs_ahead_is_told_by_the_roster_and_by_packets(tmp_path: Path) -> None:
    """The roster is due at the end of enrolment, packets at the end of their window, and an end tells it for good."""
    world = spared(tmp_path)
    table, closes = world.aggregator.manifest.timetable, world.aggregator.manifest.windows[-1].closes
    assert table.enrol_closes < closes

    def early(at: float) -> set[bool]:
        return {study.runs_ahead(at) for study in overview(tmp_path / "0" / DATABASE) if study.fellow == "teller 1"}

    assert early(table.enrol_closes - table.margin - 1) == {True}
    assert early(table.enrol_closes - table.margin) == {False}, "clocks may differ by the margin"
    world.admit(AB, world.packets())
    assert early(closes - table.margin - 1) == {True} and early(closes) == {False}
    world.tellers[0].finish(world.at(AB).study, table.enrol_closes - table.margin - 1)
    assert early(closes + 10**9) == {True}


def test_the_status_says_that_dates_do_not_hold_and_warns_where_a_title_alone_says_so(tmp_path: Path) -> None:
    world = spared(tmp_path)
    (shown, _) = overview(tmp_path / "0" / DATABASE)
    early, late = shown.manifest.timetable.published, shown.manifest.timetable.ends
    said, over = ("\n".join(_lines([each], early)) for each in (shown, evolve(shown, ended=early, stage=OVER)))
    for text, verb in ((said, "do"), (over, "did")):
        assert f"its dates {verb} not hold here: members or packets came before them" in text
        assert "in any other study tell the staff and the other tellers" in text and "enrolment ends" not in text
    assert "keep serving until it is over\n" in said and "keep serving" not in over
    held = "\n".join(_lines([shown], late))
    assert "not hold" not in held and "enrolment ends" in held
    called = evolve(shown, manifest=evolve(shown.manifest, title=f"{REHEARSAL}Sleep"), members=None)
    assert "the staff call it a rehearsal" in "\n".join(_lines([called], early)) and "call it" not in held
    assert world.tellers


def test_a_long_title_is_wrapped_and_begins_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spared(tmp_path)
    (shown, _) = overview(tmp_path / "0" / DATABASE)
    title = f"What goes with leaving a course before its end, and with coming back {'x' * 60} 01234567 done"
    monkeypatch.setenv("COLUMNS", "60")
    head = next(_lines([evolve(shown, manifest=evolve(shown.manifest, title=title))], 0)).split("\n")
    assert len(head) > 2 and all(line.startswith("    ") for line in head[1:])
    assert max(map(len, head[:-1])) <= 60 and len(head[-1].partition("”")[0]) <= 60
    plain = "".join(head).replace(" ", "").replace("\u2068", "").replace("\u2069", "")
    assert f"“{title.replace(' ', '')}”" in plain and plain.endswith("members")


def test_the_epsilon_shown_is_the_one_that_members_read(tmp_path: Path) -> None:
    spared(tmp_path)
    (shown, _) = overview(tmp_path / "0" / DATABASE)
    for design in (RULE, TABLES):
        study = manifest_of(design)
        bare = evolve(shown, manifest=parse_manifest(study.to_bytes()))
        costs = wiring().all(COST)
        (line,) = [line for line in _lines([bare], 0, costs) if "costs epsilon" in line]
        assert line == f"  costs epsilon {format_epsilon(epsilon_of(study))}, as members read"
        assert [*_epsilons(bare.manifest, costs)] == [epsilon_of(study)], "of --json"
