"""How often a liar that draws a story per request is caught before a packet leaves: measured and computed.

Each case is an exact two-sided binomial test at level 0.001. Seeds are fixed and keys hardly matter, so a case that
passes once passes again; with other seeds one case in a thousand would fail by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from tests.networks.liar_chances import binomial, caught, least_likely
from tests.support.tries import soaked
from tests.support.victims import Fate, Scene, scene

pytestmark = pytest.mark.slow

LEVEL = 0.001
KINDS = ("roster", "manifest", "key", "thresholds", "edges")
SHARES = (0.1, 0.3, 0.5)
FETCHES = (1, 2, 3, 5)
CASES = [*((0.3, fetches) for fetches in FETCHES), (0.5, 3)]
TRIALS = 40
"""A rate of .3 that is taken for .65, or the reverse, passes one case with probability below .13."""


@pytest.fixture(scope="module", params=KINDS)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


def fates(stage: Scene, fetches: int, lies: float, trials: int, linked: bool = False) -> list[Fate]:
    return [stage.victim(fetches, lies, seed, linked) for seed in range(trials)]


def compared(stage: Scene, found: list[Fate], fetches: int, lies: float, linked: bool = False) -> str:
    """Fails unless the measured rate is the computed one; a line about both."""
    computed = caught(stage.kind, fetches, lies, linked)
    seen = sum(one.caught for one in found)
    chance = least_likely(seen, len(found), computed)
    line = (
        f"{stage.kind} c={fetches} q={lies}{' linked' if linked else ''}: {seen}/{len(found)}, computed {computed:.4f}"
    )
    assert chance >= LEVEL, f"{line}, p={chance:.2g}"
    return line


@pytest.mark.parametrize("place", soaked(3, range(3)))
def test_the_measured_rate_is_the_computed_one(stage: Scene, place: int) -> None:
    """One case of the five for each kind, and each case with one kind or more; all of them are soak."""
    lies, fetches = CASES[(KINDS.index(stage.kind) + 2 * place) % len(CASES)]
    found = fates(stage, fetches, lies, TRIALS)
    compared(stage, found, fetches, lies)
    if stage.kind != "key":  # there nothing stops: the lie is refused, and the truth is waited for
        assert all(one.left != one.caught for one in found)
    assert all(one.heads >= fetches for one in found if one.left)


def test_a_liar_that_can_tell_requests_apart_is_caught_by_the_heads_alone(stage: Scene) -> None:
    found = fates(stage, 2, 0.5, TRIALS, linked=True)
    compared(stage, found, 2, 0.5, linked=True)


def test_one_story_to_a_victim_is_never_caught_by_fetching(stage: Scene) -> None:
    """Except where the story contradicts what the invite pins."""
    found = fates(stage, 5, 1.0, 10)
    if stage.kind == "manifest":
        assert all(one.caught and not one.left for one in found)
    elif stage.kind == "key":
        assert not any(one.left for one in found)
    else:
        assert caught(stage.kind, 5, 1.0) == 0
        assert not any(one.caught for one in found)
        assert all(one.left for one in found)


def test_silence_does_not_pass_for_agreement(stage: Scene) -> None:
    """A check that is not answered is made up for, so that a packet leaves after as many answers as ever, or never."""
    found = [stage.victim(4, 0.0, seed, silent=0.5) for seed in range(20)]
    assert all(one.heads >= 4 for one in found if one.left)
    assert sum(one.left for one in found) >= 10
    assert not any(one.caught for one in found)


def test_an_honest_aggregator_is_never_accused(stage: Scene) -> None:
    found = fates(stage, 5, 0.0, 10)
    assert not any(one.caught for one in found)
    assert all(one.left and one.heads == 5 for one in found)


def test_the_binomial_test_itself() -> None:
    assert sum(binomial(one, 20, 0.3) for one in range(21)) == pytest.approx(1)
    assert least_likely(6, 20, 0.3) == pytest.approx(1)
    assert least_likely(0, 10, 0.5) == pytest.approx(2 / 1024)
    assert least_likely(1, 10, 0.0) == 0
    assert least_likely(60, 100, 0.42) < LEVEL


def test_the_formula_by_counting_all_courses() -> None:
    """Every sequence of answers up to a length, weighed: heads, bodies until they fit, then the other heads."""

    def walk(kept: bool | None, left: int, bodies: int, chance: float, lies: float) -> float:
        if chance < 1e-6:
            return 0.0
        if left == 0:
            return chance
        passed = 0.0
        for story, share in ((True, lies), (False, 1 - lies)):
            if kept not in (None, story):
                continue
            whole = share**bodies
            passed += walk(story, left - 1, 0, chance * share * whole, lies)
            if bodies:
                passed += walk(story, left, bodies, chance * share * (1 - whole), lies)
        return passed

    for (kind, bodies), lies, fetches in product((("roster", 0), ("edges", 1)), SHARES, FETCHES):
        assert 1 - walk(None, fetches, bodies, 1.0, lies) == pytest.approx(caught(kind, fetches, lies), abs=2e-3)


@pytest.mark.soak
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("lies", SHARES)
@pytest.mark.parametrize("fetches", FETCHES)
def test_every_share_and_every_number_of_fetches(stage: Scene, lies: float, fetches: int, linked: bool) -> None:
    print(compared(stage, fates(stage, fetches, lies, 1000, linked), fetches, lies, linked))
