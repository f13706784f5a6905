"""Studies of sums that `sum_programs` runs: the study file, and the data of each peer. No two peers have the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from attrs import evolve, field, frozen

from tests.support.groups_study import MOST, groups_study
from tests.support.masks_study import COLUMNS, MOMENTS, Rows, masks_study
from tests.support.oblivious_study import HELD, oblivious_study
from tests.support.sums import NAMES, many, sum_study
from tests.support.trees_study import trees_study

RECORDS, PUBLIC = 40, 50
AVERAGING = "epsilon = 8.0\nstrength = 0.1"
TRANSFER = f'epsilon = 8.0\npublic_rows = {PUBLIC}\nstrength = 0.01\nclassifier = "tree"'
GIVEN = '[[given]]\nname = "people"\ndescription = "Made-up people."\nfile = "people.csv"\n'


@frozen
class Subject:
    """A study, whatever its size. `text`: its file, of the lines that name its tellers and of the fewest members."""

    text: Callable[[str, int], str]
    columns: tuple[str, ...]
    rows: Callable[[int], Rows]
    tellers: tuple[str, ...] = ()
    given: Mapping[str, bytes] = field(factory=dict)
    """The public documents of the study, by name: each in a file of comma-separated values of the same name."""


def gradient(rounds: int) -> Subject:
    """A gradient's rounds, of peers with one record each."""
    design = f'kind = "gradient"\nepsilon = 1.0\nrounds = {rounds}'
    return Subject(
        lambda tellers, fewest: sum_study(design, tellers, fewest),
        ("age", "sleep", "cups", "tired"),
        lambda number: [(number * 7 % 101, number % 13, "some", int(number % 3 == 0))],
        NAMES,
    )


def party(number: int) -> Rows:
    """The records of a party, from 8 to 24: short sleep makes tired."""
    spring = Random(number)
    slept = [spring.uniform(2, 10) for _ in range(8 + number % 17)]
    return [(day, spring.uniform(0, 100), sleep, int(sleep < 6)) for day, sleep in enumerate(slept)]


def other(number: int) -> Rows:
    """Other records than those of `party`, and another number of them: one has none, and one has strange ones."""
    spring = Random(f"other {number}")
    if number == 1:
        return []
    if number == 2:
        return [(day, value, value, value) for day, value in enumerate([None, "text", float("inf"), -1e300, "", 5])]
    return [(day, spring.uniform(0, 100), spring.uniform(2, 10), spring.randrange(2)) for day in range(30 + number)]


def people() -> bytes:
    """The public rows of `transfer`."""
    spring = Random(99)
    lines = [f"{spring.uniform(2, 10):.2f},{spring.uniform(0, 100):.1f}" for _ in range(PUBLIC)]
    return "\n".join(["sleep,age", *lines]).encode()


def rule(rounds: int) -> Subject:
    """A declared rule and so many rounds of corrections, of peers with one record each."""
    design = f'kind = "rule"\nepsilon = 1.0\nrounds = {rounds}'
    return evolve(gradient(1), text=lambda tellers, fewest: sum_study(design, tellers, fewest))


def marginals() -> Subject:
    """Tables of pairs from peers with one record each, from which rows are drawn. Numbers are long enough to be sought
    in files."""
    design = 'kind = "marginals"\nepsilon = 8.0\ntree_from = 0\nrows = 50'
    return evolve(
        gradient(1),
        text=lambda tellers, fewest: sum_study(design, tellers, fewest),
        rows=lambda number: [(*party(number)[0][1:3], "some", int(number % 3 == 0))],
    )


def averaging() -> Subject:
    """Parties that send the weights of their models to tellers."""
    return _with_tellers(f'kind = "averaging"\n{AVERAGING}', "record")


def transfer() -> Subject:
    """Parties that send their votes on public rows to tellers."""
    return _with_tellers(f'kind = "transfer"\n{TRANSFER}', "person", GIVEN, {"people": people()})


def _with_tellers(design: str, unit: str, more: str = "", given: Mapping[str, bytes] = {}) -> Subject:
    def text(tellers: str, fewest: int) -> str:
        return sum_study(design, tellers, fewest, many(RECORDS, unit)).replace('"cups", ', "") + more

    return Subject(text, COLUMNS, party, NAMES, given)


def masked_moments() -> Subject:
    """Peers with one record each, whose moments are added up under masks."""
    return Subject(
        lambda _, fewest: masks_study(MOMENTS, cohort=f"minimum = {fewest}\nmaximum = {2 * fewest + 2}"),
        COLUMNS,
        lambda number: party(number)[:1],
    )


def masked_averaging() -> Subject:
    """Parties whose weights are added up under masks."""
    return _masked(f'kind = "masked-averaging"\n{AVERAGING}', "record")


def masked_transfer() -> Subject:
    """Parties whose votes are added up under masks."""
    return _masked(f'kind = "masked-transfer"\n{TRANSFER}', "person", GIVEN, {"people": people()})


def oblivious(bits: int) -> Subject:
    """Five parties that average their weights without tellers, with keys of so many bits."""
    return Subject(lambda _tellers, _fewest: oblivious_study(bits=bits), COLUMNS, lambda number: HELD[number])


def groups() -> Subject:
    """Parties that average models in groups of five, twice, with all of their records."""

    def text(_: str, fewest: int) -> str:
        made = groups_study(2, 5, 2, 8.0, fewest, 2 * fewest + 2)
        return made.replace(f"most_records = {MOST}", f"most_records = {RECORDS}")

    return Subject(text, COLUMNS, party)


def trees() -> Subject:
    """Parties that publish a private tree of their records."""
    return Subject(
        lambda _, fewest: trees_study(8.0, minimum=fewest, maximum=2 * fewest + 2, most=RECORDS), COLUMNS, party
    )


def _masked(design: str, unit: str, more: str = "", given: Mapping[str, bytes] = {}) -> Subject:
    def text(_: str, fewest: int) -> str:
        cohort = f"minimum = {fewest}\nmaximum = {2 * fewest + 2}"
        return masks_study(design, many(RECORDS, unit), cohort) + more

    return Subject(text, COLUMNS, party, given=given)
