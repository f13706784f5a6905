"""Snapshots of many records: evaluated in the sandbox, stored in one size, and shown to their owner as counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.errors import Malformed
from anon.queries.process import in_a_child, queries
from peer.data.evaluate import evaluated, missing, request_of, snapshot_of, uncounted
from peer.data.importing import import_rows
from peer.data.snapshot import Snapshot
from peer.rules.study_secrets import fresh
from peer.web.study_text import own_answers, own_label
from tests.support.sums import MOMENTS, manifest_of, many

STUDY = manifest_of(MOMENTS, keys=many(6))
COLUMNS = ("day", "age", "sleep", "cups", "tired")


def taken_of(folder: Path, rows: list[tuple[object, ...]]) -> Snapshot:
    file = folder / "data.sqlite"
    file.unlink(missing_ok=True)
    import_rows(file, "person", COLUMNS, rows)
    return evaluated(STUDY, file, 20.0, b"seed")


def test_records_come_back_from_the_store_and_are_named_by_their_features(tmp_path: Path) -> None:
    found = taken_of(tmp_path, [("a", 30, 8, "x", 1), ("b", None, "long", "x", 0)])
    assert snapshot_of(STUDY, in_a_child(queries(request_of(STUDY, tmp_path / "data.sqlite", b"seed")), 20.0)) == found
    records = sorted(found.record.rows, key=lambda one: str(one.label))
    assert [(dict(one.values), one.label) for one in records] == [
        ({"age": None, "sleep": None}, 0.0), ({"age": 30.0, "sleep": 8.0}, 1.0)
    ]  # fmt: skip
    assert "30" not in repr(found) and found.record.label is None


@pytest.mark.parametrize("count", [0, 1, 6, 500])
def test_what_is_stored_has_one_size(tmp_path: Path, count: int) -> None:
    found = taken_of(tmp_path, [(day, 1e9 / 7 + day, 3 / 7, "x", 1) for day in range(count)])
    assert found.rows is not None and len(found.rows) == min(count, 6)
    stored = in_a_child(queries(request_of(STUDY, tmp_path / "data.sqlite", b"seed")), 20.0)
    assert len(stored) == len(missing(STUDY)) and snapshot_of(STUDY, stored) == found
    assert snapshot_of(STUDY, missing(STUDY)).rows == ()


def test_the_owner_sees_in_how_many_records_a_value_was_found(tmp_path: Path) -> None:
    found = taken_of(tmp_path, [(1, 30, 8, "x", 1), (2, 40, None, "x", None), (3, None, None, "x", 0)])
    shown = [(one.name, one.value, one.missing) for one in (*own_answers(STUDY, found), own_label(STUDY, found, 0))]
    assert shown == [
        ("age", "in 2 of 3 records", False), ("sleep", "in 1 of 3 records", False),
        ("tired", "in 2 of 3 records", False)
    ]  # fmt: skip
    assert uncounted(STUDY, found) == ()
    far = taken_of(tmp_path, [(1, 130, 8, "x", 1), (2, -1, 8, "x", 1), (3, 100, None, "x", 1), (4, None, 8, "x", 1)])
    assert [one.value for one in own_answers(STUDY, far)] == [
        "in 3 of 4 records; 2 beyond the range, which count as its end", "in 3 of 4 records"
    ]  # fmt: skip
    none = taken_of(tmp_path, [(1, 30, None, "x", 5)])
    assert [one.missing for one in own_answers(STUDY, none)] == [False, True]
    assert uncounted(STUDY, none) == ("sleep", "tired")
    assert all(
        one.missing and one.value == "nothing found" for one in own_answers(STUDY, snapshot_of(STUDY, missing(STUDY)))
    )


def test_damaged_answers_of_records_are_none_and_records_of_another_form_are_refused() -> None:
    for stored in (b"", b"\xff" * len(missing(STUDY)), missing(STUDY) + b"\0"):
        assert snapshot_of(STUDY, stored).rows == ()
    for row in ((1.0,), (1.0, [2.0])):
        with pytest.raises(Malformed, match=r"another length|other than"):
            Snapshot(1, {"age": None}, None, (row,))  # type: ignore[arg-type]


def test_the_seed_of_the_draw_and_the_lot_are_kept_with_the_secrets_and_are_of_one_study() -> None:
    drawn = iter(bytes([number]) * 4096 for number in range(1, 200))
    first, second = (fresh((64, 96), "code", lambda size: next(drawn)[:size]) for _ in range(2))
    again = type(first).from_bytes(first.to_bytes())
    assert again.records_seed == first.records_seed != second.records_seed and len(first.records_seed) == 32
    assert again.lot == first.lot != second.lot and len({first.lot, first.records_seed}) == 2 and len(first.lot) == 32
    assert all(secret not in one for one in first.drawn for secret in (first.records_seed, first.lot))
