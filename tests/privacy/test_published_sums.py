"""An audit of sums as they are published: from the owners' rows, through peers, tellers and aggregator, to the signed
document. It finds noise that is a fifth less, and one record that is counted twice.

Two whole studies differ in every member's row, each in cells of its own. Tellers draw the same noise in both. So the
two published sums differ by the members' influence, exactly. An attacker knows all rows and is one of the two tellers:
beside the rows and its own noise a published sum has the honest teller's noise alone.

The cost found is the largest influence over the largest variance that is likely. It is compared with the charge in the
members' ledgers. The variance is underrated with a chance of at most `FALSE_ALARM`. The seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from attrs import frozen
from scipy.stats import chi2

from anon.accounting.zcdp import gaussian_rho
from anon.noise import DiscreteGaussian
from anon.teller.journal import Journal
from anon.wire.packets import Occasion
from tests.support.studies import categorical, head_of, label_of, study
from tests.support.study_with_tellers import TELLERS, a_study, all_sent, short
from tests.support.world import has

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-6
MEMBERS, FEATURES, CATEGORIES = 4, 8, 64
NAMES = [f"x{place}" for place in range(FEATURES)]
STUDY = study(
    head_of(
        "Audited", "To be audited.", [*NAMES, "tired"], label_of("tired", 1, 0),
        [categorical(name, [f"c{place}" for place in range(CATEGORIES)], "c0") for name in NAMES],
    ),
    'kind = "tables-sum"\nepsilon = 1.0', {"enrol": "1h", "settle": "10m", "collect": "1h"}, "minimum = 4",
).replace("version = 1", 'version = 1\nprotocol = "sum"')  # fmt: skip


def row(member: int, changed: bool) -> dict[str, object]:
    """A member's row. All members together use no cell twice, in neither study."""
    return dict.fromkeys(NAMES, f"c{1 + 2 * member + changed}") | {"tired": 0}


@frozen
class Published:
    """The sums of one study, the attacker's own noise in them, and the largest charge in a member's ledger."""

    values: tuple[int, ...]
    own_noise: tuple[int, ...]
    charged: int

    def unexplained(self, exact: Sequence[int]) -> list[int]:
        """The sums without all rows and without the attacker's own noise."""
        return [value - own - one for value, own, one in zip(self.values, self.own_noise, exact, strict=True)]


def exact(changed: bool) -> list[int]:
    """The sums of all rows: a table of each feature with the label."""
    cells = [0] * (FEATURES * CATEGORIES * 2)
    for member in range(MEMBERS):
        for feature in range(FEATURES):
            cells[2 * (feature * CATEGORIES + 1 + 2 * member + changed)] += 1
    return cells


def influence(member: int, one: Sequence[int], other: Sequence[int]) -> int:
    """The squared distance of two sums in the cells of a member."""
    places = [feature * CATEGORIES + 1 + 2 * member + side for feature in range(FEATURES) for side in (False, True)]
    return sum((one[2 * place] - other[2 * place]) ** 2 for place in places)


def not_learned(*_: object) -> None:
    raise OSError


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Callable[[int], bytes], tuple[int, ...]]]:
    """The noise that was drawn from each stream of bytes. No model is learned: it would take a minute, and tell nothing
    beside the sums."""
    monkeypatch.setattr("aggregator.study.effects.learn_from_counts", not_learned)
    noise: dict[Callable[[int], bytes], tuple[int, ...]] = {}
    vector = DiscreteGaussian.vector

    def noted(self: DiscreteGaussian, length: int, random_bytes: Callable[[int], bytes]) -> list[int]:
        entries = vector(self, length, random_bytes)
        noise[random_bytes] = tuple(entries)
        return entries

    monkeypatch.setattr(DiscreteGaussian, "vector", noted)
    yield noise


async def published(folder: Path, changed: bool, drawn: dict[Callable[[int], bytes], tuple[int, ...]]) -> Published:
    """A whole study, with the members' changed rows or the others."""
    people = [{"person": [row(member, changed)]} for member in range(MEMBERS)]
    async with a_study(folder, MEMBERS, short(STUDY + TELLERS), people=people) as made:
        streams = [Random(number).randbytes for number in range(len(made.tellers))]
        for teller, stream in zip(made.tellers, streams, strict=True):
            teller.session._random_bytes = stream
        await all_sent(made)
        while not has(made.live, "sums"):
            await made.work(1)
        charged = max(peer.budget().entries[0].spent for peer in made.world.peers)
        return Published(await made.sums(), drawn[streams[1]], charged)


async def cost_found(folder: Path, drawn: dict[Callable[[int], bytes], tuple[int, ...]]) -> tuple[int, int, list[int]]:
    """The cost that the published sums show and the one that was charged, in nano-rho; each member's influence."""
    one, other = [await published(folder / str(changed), changed, drawn) for changed in (False, True)]
    moved = [influence(member, one.values, other.values) for member in range(MEMBERS)]
    assert sum((a - b) ** 2 for a, b in zip(one.values, other.values, strict=True)) == sum(moved), "equal noise"
    noise = one.unexplained(exact(False))
    variance = sum(entry * entry for entry in noise) / chi2.ppf(FALSE_ALARM, len(noise))
    return gaussian_rho(max(moved), Fraction(variance)), one.charged, moved


async def test_published_sums_show_no_more_than_was_charged(
    tmp_path: Path, drawn: dict[Callable[[int], bytes], tuple[int, ...]]
) -> None:
    found, charged, moved = await cost_found(tmp_path, drawn)
    assert moved == [2 * FEATURES] * MEMBERS, "every member has all the influence that the noise is made for"
    assert 0.7 * charged < found <= charged, "an audit of this power sees most of the cost"


async def test_an_honest_tellers_noise_that_is_a_fifth_less_is_found(
    tmp_path: Path, drawn: dict[Callable[[int], bytes], tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "anon.teller.rules.DiscreteGaussian", lambda sigma_squared: DiscreteGaussian(sigma_squared * Fraction(16, 25))
    )
    found, charged, _ = await cost_found(tmp_path, drawn)
    assert found > charged


async def test_one_record_that_is_counted_twice_is_found(
    tmp_path: Path, drawn: dict[Callable[[int], bytes], tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = Journal.outputs

    def doubled(self: Journal, occasion: Occasion, tags: Sequence[bytes]) -> Iterator[bytes]:
        return outputs(self, occasion, [tags[0], *tags])

    monkeypatch.setattr(Journal, "outputs", doubled)
    found, charged, moved = await cost_found(tmp_path, drawn)
    assert found > charged and max(moved) > 2 * min(moved), "the first tag may be another member's in each study"
