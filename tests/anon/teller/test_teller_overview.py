"""`anonml teller status` at each stage of a sum: it counts what was accepted also when the shares are gone."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from anon.teller.home import DATABASE
from anon.teller.overview import OVER, StudyOverview, by_time, overview
from tests.support.spare import spared

AB = 0


def _seen(folder: Path) -> str:
    """The sum of the first pair, as the first teller tells of it."""
    return next(study.sums[0].said for study in overview(folder / "0" / DATABASE) if study.fellow == "teller 1")


def test_what_was_accepted_is_said_from_the_first_packet_to_the_end(tmp_path: Path) -> None:
    world = spared(tmp_path)
    assert _seen(tmp_path) == "round 1, slot 1: waiting; packets taken 0, accepted 0"
    statements = world.admit(AB, packets := world.packets())
    assert _seen(tmp_path) == "round 1, slot 1: taking packets; packets taken 4, accepted 0"
    body = world.list_of(AB, world.settle(AB, statements) - {packets[0].tag})
    assert _seen(tmp_path) == "round 1, slot 1: taking packets; packets taken 4, accepted 4"
    world.tellers[0].sign_list(world.at(AB), body)
    assert _seen(tmp_path) == "round 1, slot 1: list signed; packets taken 4, accepted 3"
    world.finished(AB, body)
    assert _seen(tmp_path) == "round 1, slot 1: done; packets accepted 3"
    world.tellers[0].finish(world.at(AB).study)
    assert _seen(tmp_path) == "round 1, slot 1: done; packets accepted 3"


def test_a_study_that_is_over_without_a_sum_claims_no_count(tmp_path: Path) -> None:
    world = spared(tmp_path)
    world.settle(AB, world.admit(AB, world.packets()))
    world.tellers[0].finish(world.at(AB).study)
    assert _seen(tmp_path) == "round 1, slot 1: ended without a sum"


def test_studies_that_run_come_first_and_the_newest_of_each_kind_before_the_others(tmp_path: Path) -> None:
    spared(tmp_path)
    study = overview(tmp_path / "0" / DATABASE)[0]

    def at(published: int, stage: str) -> StudyOverview:
        timetable = evolve(study.manifest.timetable, published=study.manifest.timetable.published - published)
        return evolve(study, stage=stage, manifest=evolve(study.manifest, timetable=timetable))

    old, new = at(90, "running"), at(10, "countersigned")
    older_over, over = at(80, OVER), at(0, OVER)
    assert by_time([older_over, old, over, new]) == [new, old, over, older_over]
