"""Databases that differ in one unit, through query, draw and vector: no sum moves beyond the bound that noise is made
for.

A record is all rows of one key. So the neighbours of a database have the rows of one key in place of those of another.
A person's neighbours are any databases. Rows have doubled keys, keys of other spellings, and values of any type. The
soak has 10^6 pairs. A thousand others go through a real child and through shares, which add up to the same vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from math import sqrt
from pathlib import Path
from random import Random

import pytest

from anon.protocols.sum import vector as exact
from anon.protocols.sum.design import shape_of
from anon.protocols.sum.standing import arrangement_of, sum_asked
from anon.protocols.vectors.gradient import WEIGHT
from anon.queries import process
from anon.queries.answers import answered
from anon.queries.sandbox import Bench
from anon.study.manifest import Manifest
from anon.vdaf.prio3 import KEY_SIZE, NONCE_SIZE
from peer.data.evaluate import request_of, snapshot_of
from peer.data.importing import import_rows
from peer.protocols.sum.part import measurement
from peer.rules.checks import tables_of
from tests.support.sums import GRADIENT, MOMENTS, manifest_of, many
from tests.support.tries import every

MOST = 3
COLUMNS = ("age", "sleep", "cups", "tired", "day")
CLIPPED = [f"{GRADIENT}\nclip = {clip}" for clip in (0.01, 0.1, 0.4)]
STUDIES = [(design, unit) for design in (MOMENTS, GRADIENT) for unit in ("record", "person")]
SEED = bytes(range(32))
VALUES = (None, 0, 50, 100, -7, 12, 6.5, 1e300, "text", b"bytes", 1, 0.25)
KEYS = (1, 2, 3, 4, 5, 6, 1.0, 2.0, "1", "b", None, 0.5)
Row = tuple[object, ...]
needs_children = pytest.mark.skipif(not process.has_children(), reason="no child processes here")


@cache
def study(design: str, unit: str) -> Manifest:
    """`design` may have a clip of its own."""
    return manifest_of(design, keys=many(MOST, unit))


@cache
def bench(design: str, unit: str) -> Bench:
    return Bench(tables_of(study(design, unit)))


def vector_of(design: str, unit: str, rows: list[Row], weights: tuple[int, ...] = (0, 0, 0)) -> list[int]:
    """The exact vector that a peer with these rows contributes, in a round that begins at these weights."""
    manifest, sandbox = study(design, unit), bench(design, unit)
    sandbox.put("person", rows)
    return vector_in(manifest, answered(sandbox, request_of(manifest, Path("none"), SEED)), weights)


def vector_in(manifest: Manifest, message: bytes, weights: tuple[int, ...] = (0, 0, 0)) -> list[int]:
    return list(exact.vector_of(manifest, manifest.surveys[0], snapshot_of(manifest, message).record, weights))


def apart(one: list[int], other: list[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def limit(design: str, unit: str) -> int:
    return shape_of(study(design, unit).surveys[0]).sensitivity_squared("replace-one")


def meant(key: object) -> object:
    """The record that a row of this key belongs to; None for none."""
    if isinstance(key, float):
        return int(key) if key.is_integer() else None
    return key


def neighbours(rng: Random, unit: str) -> tuple[list[Row], list[Row]]:
    """Two databases that differ in one unit, in an order of their own."""

    def rows(count: int) -> list[Row]:
        return [(*(rng.choice(VALUES) for _ in COLUMNS[:-1]), rng.choice(KEYS)) for _ in range(count)]

    one = rows(rng.randrange(1, 9))
    if unit == "person":
        return one, rows(rng.randrange(9))
    keys = sorted({meant(row[-1]) for row in one} - {None}, key=str)
    gone = rng.choice(keys or [None])
    kept = [row for row in one if meant(row[-1]) != gone or gone is None]
    other = rng.choice(
        [key for key in KEYS if meant(key) is not None and meant(key) not in set(map(meant, (row[-1] for row in kept)))]
    )
    kept += [(*row[:-1], other) for row in rows(rng.randrange(3))]
    return one, rng.sample(kept, len(kept))


def hold(design: str, unit: str, seed: int, pairs: int) -> None:
    rng, most = Random(seed), limit(design, unit)
    for number in range(pairs):
        one, other = (vector_of(design, unit, rows) for rows in neighbours(rng, unit))
        assert apart(one, other) <= most, (design, unit, seed, number)


@pytest.mark.parametrize("number", every(3, range(len(STUDIES))))
def test_no_pair_is_beyond_the_bound(number: int) -> None:
    hold(*STUDIES[number], 1, 500)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize(("design", "unit"), STUDIES)
def test_no_pair_of_a_million_is(design: str, unit: str, part: int) -> None:
    hold(design, unit, 100 + part, 25_000)


def grid() -> Iterator[list[Row]]:
    """One record at ends and middles of its columns."""
    for age, sleep, tired in product((0, 50, 75, 100), (0, 6, 9, 12), (0, 1)):
        yield [(age, sleep, None, tired, 1)]


@pytest.mark.parametrize(("design", "unit"), STUDIES)
@pytest.mark.slow
def test_a_constructed_pair_comes_near_the_bound(design: str, unit: str) -> None:
    """To 95 % of it, beside that by which rounding may move two vectors. A gradient does at weights that call two
    records like each other tired and not, both wrongly."""
    shape, weights = shape_of(study(design, unit).surveys[0]), (-3 * WEIGHT, -3 * WEIGHT, 5 * WEIGHT)
    vectors = [vector_of(design, unit, rows, weights) for rows in grid()]
    found = max(apart(one, other) for one in vectors for other in vectors)
    rounding = 0.0 if design == MOMENTS and unit == "record" else sqrt(shape.length)
    assert sqrt(found) >= 0.95 * (sqrt(limit(design, unit)) - rounding)


@pytest.mark.parametrize(("design", "unit"), every(5, CLIPPED, ["record", "person"]))
@pytest.mark.slow
def test_a_record_in_place_of_none_is_within_the_bound_at_any_clip(design: str, unit: str) -> None:
    """The query decides what is a record. With a small clip, their number moves more than the gradients do."""
    one, other = (vector_of(design, unit, rows) for rows in ([(50, 6, None, 1, 1)], []))
    assert 0 < apart(one, other) <= limit(design, unit)
    hold(design, unit, 2, 50)


@pytest.mark.slow
def test_a_row_that_moves_to_the_key_of_another_one_changes_two_records() -> None:
    """The promise is about a record. Such a row is one record less, and another one that has no value any more."""
    rng, most, farthest = Random(3), limit(MOMENTS, "record"), 0
    for _ in range(300):
        ends = [(rng.choice((0, 100)), rng.choice((0, 12)), None, rng.choice((0, 1))) for _ in range(MOST)]
        rows: list[Row] = [(*row, key) for key, row in enumerate(ends)]
        moved = [*rows[1:], (*rows[0][:-1], 1)]
        farthest = max(farthest, apart(*(vector_of(MOMENTS, "record", one) for one in (rows, moved))))
    assert most < farthest <= 4 * most


def through_shares(manifest: Manifest, vector: list[int], randomness: bytes) -> list[int]:
    """The vector cut into shares, whose proof each teller checks, and added up from theirs."""
    prio3 = arrangement_of(manifest).prio3(sum_asked(manifest, 0))
    context, key, nonce = b"context", bytes(KEY_SIZE), bytes(NONCE_SIZE)
    cut = prio3.shard(
        context, measurement(manifest.surveys[0], vector), nonce, randomness[: prio3.randomness_size]
    )
    begun = [
        prio3.verify_init(key, context, at, nonce, cut.public_share, one) for at, one in enumerate(cut.input_shares)
    ]
    message = prio3.verifier_shares_to_message(context, [share for _, share in begun])
    return prio3.unshard([prio3.aggregate([prio3.verify_next(state, message)]) for state, _ in begun])


def in_children(folder: Path, pairs: int) -> None:
    """A real child runs the queries, and shares add up to the vector that was made here."""
    for number in range(pairs):
        design, unit = STUDIES[number % len(STUDIES)]
        manifest, rng, sums = study(design, unit), Random(f"child {number}"), list[list[int]]()
        for rows in neighbours(rng, unit):
            path = folder / "data.sqlite"
            path.unlink(missing_ok=True)
            import_rows(
                path, "person", COLUMNS, [rowed(row) for row in rows] or [(None,) * len(COLUMNS)], durable=False
            )
            message = process.in_a_child(process.queries(request_of(manifest, path, SEED)), 60.0)
            vector = vector_in(manifest, message)
            assert vector == vector_of(design, unit, [rowed(row) for row in rows])
            sums.append(through_shares(manifest, vector, rng.randbytes(10_000)))
            assert sums[-1] == vector
        assert apart(*sums) <= limit(design, unit)


def rowed(row: Row) -> Row:
    """The row as a file's import gives it: no bytes."""
    return tuple(None if isinstance(value, bytes) else value for value in row)


@pytest.mark.slow
@needs_children
def test_pairs_through_a_child_and_shares(tmp_path: Path) -> None:
    in_children(tmp_path, 12)


@pytest.mark.soak
@needs_children
def test_a_thousand_pairs_through_a_child_and_shares(tmp_path: Path) -> None:
    in_children(tmp_path, 1000)
