"""A teller that is killed at any write of its journal: nothing is lost, counted twice, noised twice or said in two
ways."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anon.noise import DiscreteGaussian
from anon.sharing.arrangement import Arrangement
from anon.sharing.combine import combine
from anon.sharing.statements import Disagreed
from anon.teller import journal
from tests.support.teller_process import KilledTeller
from tests.support.tellers import MANIFEST, PLACES, World, expected, make_world, ready_world

NOISE = 1000
WAY = [write for write in journal.WRITES if write != "stop"]
CASES = [(f"{side}-commit-of-{write}", turn) for write in WAY for side in ("before", "after") for turn in (1, 2)]


class Killed(BaseException):
    """In place of SIGKILL, within one process."""


class Killer:
    """Raises once, the given time that a point is passed."""

    def __init__(self, point: str, turn: int) -> None:
        self.point, self.left, self.done = point, turn, False

    def __call__(self, name: str) -> None:
        self.left -= name == self.point
        if not self.left and not self.done:
            self.done = True
            raise Killed


class Way:
    """A whole study, each call repeated until it is answered; everything that ever left a teller is remembered."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.left: dict[tuple[int, str], set[Any]] = defaultdict(set)

    def ask(self, number: int, what: str, *given: Any) -> Any:
        while True:
            try:
                answer = getattr(self.world.tellers[number], what)(*given)
            except Killed:
                self.world.restart(number)
                continue
            if what in ("admit", "sign_list", "add_noise"):
                self.left[number, what].add(answer.statement if what == "admit" else answer)
            return answer

    def every(self, what: str, given: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        """One answer of each teller. All are asked twice, as by an aggregator that lost the first answer."""
        first = [self.ask(number, what, *given(number)) for number in range(len(self.world.tellers))]
        again = [self.ask(number, what, *given(number)) for number in range(len(self.world.tellers))]
        assert first == again or what == "key_shares"
        return again

    def through(self, noise: int) -> None:
        world, study = self.world, self.world.study
        entries = [
            self.ask(number, "offer", f"teller {number}", f"127.0.0.1:900{number}")
            for number in range(len(world.tellers))
        ]
        world.arrangement = Arrangement(3, tuple(entries), world.arrangement.sums)
        self.every("countersign", lambda _number: (study, world.arrangement.to_bytes(), MANIFEST))
        parts = self.every("key_shares", lambda _number: (study,))
        self.every("take_key_share", lambda number: (study, 1 - number, parts[1 - number][number]))
        self.every("take_roll", lambda _number: (study, *world.closing()))
        occasion, packets = world.occasion(), world.packets()
        items = [[packet.relayed(number).to_bytes() for packet in packets] for number in (0, 1)]
        verifiers = [one.statement for one in self.every("admit", lambda number: (occasion, items[number]))]
        accepted = self.every("settle", lambda number: (occasion, [verifiers[1 - number]]))
        assert accepted[0] == accepted[1] == {packet.tag for packet in packets}
        body = world.list_of(accepted[0])
        signatures = self.every("sign_list", lambda _number: (occasion, body))
        shares = self.every("add_noise", lambda number: (occasion, [signatures[1 - number]]))
        summed = combine(world.arrangement, occasion, body, signatures, shares)
        assert summed.values == tuple(cell + 2 * noise for cell in expected(PLACES[:4]))
        self.every("finish", lambda _number: (study, 1_700_000_000))
        assert {len(said) for said in self.left.values()} == {1}


@pytest.fixture
def loud(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that can be counted: each teller's is 1000 in every entry."""
    monkeypatch.setattr(DiscreteGaussian, "vector", lambda _self, length, _random_bytes: [NOISE] * length)


@pytest.mark.slow
@pytest.mark.usefixtures("loud")
@pytest.mark.parametrize(("point", "turn"), CASES)
def test_killed_at_every_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, turn: int) -> None:
    """Turns 1 and 2: the first teller's write, and the second's or the first one's repetition."""
    way = Way(make_world(tmp_path))
    killer = Killer(point, turn)
    monkeypatch.setattr(journal, "crash_point", killer)
    way.through(NOISE)
    assert killer.done, "the point was never passed"


@pytest.mark.parametrize("side", ["before", "after"])
def test_killed_while_stopping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    world = ready_world(tmp_path)
    packets = world.packets()
    accepted = world.settle(world.admit(packets))
    world.tellers[0].sign_list(world.occasion(), world.list_of(accepted))
    other = world.tellers[1].sign_list(world.occasion(), world.list_of(accepted - {packets[0].tag}))
    monkeypatch.setattr(journal, "crash_point", Killer(f"{side}-commit-of-stop", 1))
    with pytest.raises(Killed):
        world.tellers[0].add_noise(world.occasion(), [other])
    world.restart(0)
    with pytest.raises(Disagreed):
        world.tellers[0].add_noise(world.occasion(), [other])
    assert world.journals[0].end(world.occasion()).noisy is None


def test_every_write_is_a_point() -> None:
    """A new kind of write is named in `WRITES`, or the journal refuses to pass it while a test kills."""
    source = Path(journal.__file__).read_text()
    assert {write for write in journal.WRITES if f'_writing("{write}"' in source} == set(journal.WRITES)
    assert source.count("self._writing(") == len(journal.WRITES)


@pytest.mark.process
@pytest.mark.parametrize(("number", "point"), [
    (place % 2, f"{side}-commit-of-{write}") for place, write in enumerate(WAY) for side in ("before", "after")
])
def test_killed_by_the_system(tmp_path: Path, number: int, point: str) -> None:
    """SIGKILL in a process of its own. Its noise is real and silent, the other teller's too."""
    world = make_world(tmp_path)
    world.journals[number].close()
    killed = KilledTeller(tmp_path / str(number), point)
    world.tellers[number] = killed  # type: ignore[call-overload]
    way = Way(world)
    try:
        way.through(noise=0)
    finally:
        killed.end()
    assert killed.deaths == 1
