"""Messages of a federated job: what leaves is within the clip and has its noise, or nothing leaves.

Generated messages: 200, and 10,000 in the soak. Each is what training might offer: as declared, with any values, or of
another form. The noise that a message was given is taken off again. The rest must lie within the declared norm.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anon.accounting.zcdp import gaussian_rho, rho_within
from anon.errors import InvalidValue, Malformed, Refused
from anon.ldp.epsilon import NANO
from anon.noise import DiscreteGaussian
from anon.protocols.cost_words import DELTA
from peer.ledger.declaration import JobTerms, Offer, OfferedArray, declaration_of
from peer.ledger.job_store import JOB_TABLE, MOST_ASKING, JobEvent, JobState
from peer.store.home import PeerHome
from peer.view import made_ready
from tests.support.federated import TERMS, known, node, offer, opened, terms

SECRET = 1987.0625
"""A value of somebody's data: exact in both kinds of numbers."""
PER_HOME = 200


class Recorded:
    """Fresh bytes, kept: the noise of the last message can be drawn again."""

    def __init__(self, random: Random) -> None:
        self.random, self.kept = random, b""

    def __call__(self, count: int) -> bytes:
        drawn = self.random.randbytes(count)
        self.kept += drawn
        return drawn

    def again(self, count: int) -> bytes:
        found, self.kept = self.kept[:count], self.kept[count:]
        assert len(found) == count
        return found


def _values(random: Random, count: int) -> list[float]:
    kinds = [math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, 0.0, SECRET]
    return [random.choice([*kinds, random.gauss(0, 1), random.gauss(0, 1e6)]) for _ in range(count)]


def _generated(random: Random, of: JobTerms) -> tuple[Offer | None, bool]:
    """An offer that training might make, None where it failed; and whether its form was not declared."""
    arrays = {
        array.name: OfferedArray(array.dtype, array.shape, _values(random, array.size)) for array in of.arrays
    }
    others: set[str] = set()
    fault = random.choice(["", "", "", "", "failed", "extra", "scalar", "missing", "kind", "shape", "flat", "metric"])
    if fault == "failed":
        return None, False
    name = random.choice([*arrays])
    told = arrays[name]
    if fault == "extra":
        arrays["records"] = OfferedArray("float32", (1,), [SECRET])
    elif fault == "scalar":
        arrays["count"] = OfferedArray("int64", (), [1987])
    elif fault == "missing":
        del arrays[name]
    elif fault == "kind":
        kind = random.choice(["float16", "int64", "bool", "complex128", ">f4", "object", "float32" * 2])
        arrays[name] = OfferedArray(kind, told.shape, told.values)
    elif fault == "shape":
        arrays[name] = OfferedArray(told.dtype, (*told.shape, 1), told.values)
    elif fault == "flat":
        arrays[name] = OfferedArray(told.dtype, (), told.values[:1])
    elif fault == "metric":
        others |= {random.choice(["loss", "accuracy", "num_examples", "status.message", ""])}
    if random.random() < 0.3:
        others.add("num-examples")
    return Offer(arrays, frozenset(others)), bool(fault)


@pytest.mark.slow
def test_nothing_unperturbed_leaves(tmp_path: Path) -> None:
    _assert_nothing_unperturbed_leaves(tmp_path, PER_HOME)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_nothing_unperturbed_leaves_in_10000_messages(tmp_path: Path) -> None:
    _assert_nothing_unperturbed_leaves(tmp_path, 10_000)


def _assert_nothing_unperturbed_leaves(tmp_path: Path, count: int) -> None:
    random, sent, refused = Random(f"generated {count}"), 0, 0
    for place in range(0, count, PER_HOME):
        of = terms(title=f"Hearts {place}", rounds=PER_HOME, rho="0.0005", relative=bool(place // PER_HOME % 2))
        drawn = Recorded(random)
        here = node(tmp_path / str(place), of, drawn)
        base = {"weight": _values(random, 6), "bias": _values(random, 2)} if of.relative else None
        for number in range(PER_HOME):
            (offered, strange), before = _generated(random, of), known(here.home)
            drawn.kept = b""
            try:
                message = here.finish(str(number), offered, base)
            except Refused:
                refused += 1
                after = known(here.home)
                assert strange and after.state is JobState.STOPPED
                assert after.entry == before.entry and after.answered == before.answered and not drawn.kept
                with opened(here.home) as store:  # its owner is asked again, and goes on
                    store.agree(of.job)
            else:
                sent += 1
                assert not strange
                after = known(here.home)
                assert after.entry is not None and before.entry is not None
                assert after.entry.spent == before.entry.spent + of.rho and after.answered == before.answered + 1
                _assert_clipped_and_noisy(of, message, base, drawn)
                assert here.finish(str(number), offer(), base) == message and not drawn.kept
    assert sent > count / 3 and refused > count / 4


def _assert_clipped_and_noisy(
    of: JobTerms, message: bytes, base: dict[str, list[float]] | None, drawn: Recorded
) -> None:
    assert len(message) == 6 * 4 + 2 * 8
    assert struct.pack("<f", SECRET) not in message and struct.pack("<d", SECRET) not in message
    noise = DiscreteGaussian(of.noise.sigma_squared).vector(8, drawn.again)
    numbers = [*struct.unpack("<6f", message[:24]), *struct.unpack("<2d", message[24:])]
    if base is not None:
        under = [value if math.isfinite(value) else 0.0 for value in (*base["weight"], *base["bias"])]
        if max(map(abs, under)) > 2**20:  # beyond, the message's own numbers are coarser than its noise
            return
        numbers = [number - value for number, value in zip(numbers, under, strict=True)]
    left = [round(number * of.scaling.scale) - added for number, added in zip(numbers, noise, strict=True)]
    coarse = 2 if base is not None else 1  # a float32 beside 2**20 is rounded
    assert sum(value * value for value in left) <= coarse * of.scaling.norm_squared + (2**12 if base else 1)
    assert any(noise)


def test_the_noise_is_that_of_the_declared_rho_for_a_replaced_message() -> None:
    of = terms(rho="0.02")
    squared = 4 * of.scaling.norm_squared
    assert gaussian_rho(squared, of.noise.sigma_squared) == of.rho == 20_000_000
    assert of.noise.sigma_squared == Fraction(squared * NANO, 2 * of.rho)
    assert of.total.amount == 3 * of.rho and 2.0 < (of.noise.sigma_squared / of.scaling.scale**2) ** 0.5 / 5 < 2.1


def test_an_epsilon_is_of_each_round_at_the_shown_delta() -> None:
    given = {name: value for name, value in TERMS.items() if name != "rho"}
    of = declaration_of(given | {"epsilon": "0.9"})
    assert of.each.epsilon == 900_000_000 and rho_within(900_000_000, DELTA) == of.rho


def test_messages_of_failed_and_of_any_training_are_spread_alike() -> None:
    """The mean of 400 failed messages is 0 within five standard errors (false alarm: 8 numbers, below 1e-5)."""
    of, random = terms(rho="2"), Random("spread")
    drawn = [struct.unpack("<6f2d", of.perturbed(None, None, random.randbytes)) for _ in range(400)]
    sigma = float(of.noise.sigma_squared) ** 0.5 / of.scaling.scale
    for column in zip(*drawn, strict=True):
        assert abs(sum(column) / 400) < 5 * sigma / 20
        assert 0.7 < (sum(value * value for value in column) / 400) ** 0.5 / sigma < 1.3


@pytest.mark.parametrize(("changed", "told"), [
    ({"arrays": {}}, "numbers"),
    ({"arrays": {"weight": {"shape": [2**23]}}}, "numbers"),
    ({"arrays": {"weight": {"shape": [0]}}}, "shapes"),
    ({"arrays": {"weight": {"shape": [2], "dtype": "int64"}}}, "shapes"),
    ({"arrays": {"weight": {"shape": [True]}}}, "shapes"),
    ({"arrays": {"": {"shape": [1]}}}, "names"),
    ({"norm": 0}, "norm"), ({"norm": "inf"}, "norm"), ({"norm": "much"}, "norm"), ({"norm": -1}, "norm"),
    ({"rounds": 0}, "rounds"), ({"rounds": 2.5}, "rounds"), ({"rounds": True}, "rounds"),
    ({"rho": "101"}, "rho"), ({"relative": 1}, "rho"), ({"epsilon": 1}, "not both"),
    ({"title": "two\nlines"}, "seen"), ({"title": 7}, "names"), ({"unit": "house"}, "expected title"),
    ({"constants": {"loss": math.nan}}, "constants"), ({"constants": {"loss": "0.5"}}, "constants"),
    ({"also": 1}, "expected title"),
    ({"arrays": {f"a{number}": {"shape": [1]} for number in range(1001)}}, "at most 1000"),
    ({"constants": {f"a{number}": 1 for number in range(1001)}}, "at most 1000"),
])
def test_a_declaration_that_is_none_is_refused(changed: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidValue, match=told):
        terms(**changed)


@pytest.mark.parametrize("content", [b'title = "x', b"\xff\xfe", b"[arrays]\nw = {shape = [2]\n", b"a=" + 9000 * b"["])
def test_a_file_that_is_no_toml_is_told(tmp_path: Path, content: bytes) -> None:
    (file := tmp_path / "job.toml").write_bytes(content)
    with pytest.raises(InvalidValue, match=r"not TOML.*correct the file"):
        declaration_of(file)


def test_jobs_that_wait_for_an_answer_are_few(tmp_path: Path) -> None:
    made_ready(PeerHome(tmp_path))
    jobs = [terms(title=f"Run {number}") for number in range(MOST_ASKING + 1)]
    with opened(tmp_path) as store:
        for job in jobs[:-1]:
            store.ask(job)
            store.ask(job)
        with pytest.raises(Refused, match="answer them"):
            store.ask(jobs[-1])
        assert len(store.jobs()) == MOST_ASKING
        store.refuse(jobs[0].job)
        store.ask(jobs[-1])


@pytest.mark.parametrize("rho", ["0", "-1", "1e-10", "nan"])
def test_a_rho_that_is_none_is_refused(rho: str) -> None:
    with pytest.raises(Refused):
        terms(rho=rho)


def test_a_declaration_has_one_spelling_and_other_terms_are_another_job(tmp_path: Path) -> None:
    of = terms(relative=True)
    assert JobTerms.from_bytes(of.to_bytes()) == of
    changed = [terms(), terms(title="Other"), terms(norm=2), terms(rounds=4), terms(constants={}), terms(unit="record")]
    assert len({one.job for one in (of, *changed)}) == 7
    with pytest.raises(Malformed):
        JobTerms.from_bytes(of.to_bytes() + b"\0")
    file = tmp_path / "job.toml"
    file.write_text(
        'title = "Hearts"\nasked_by = "a hospital"\nnorm = 1\nrounds = 3\nrho = "0.02"\nrelative = true\n'
        '[arrays]\nweight = {shape = [2, 3]}\nbias = {shape = [2], dtype = "float64"}\n'
        "[constants]\nnum-examples = 1\n",
        "utf-8",
    )
    assert declaration_of(file) == of == declaration_of(str(file))


def test_the_owner_reads_every_number_of_the_terms() -> None:
    told = " ".join(terms().sentences())
    for said in ("3 rounds", "8 numbers", "“weight” (2 x 3)", "“bias” (2)", "at most 1", "epsilon 0.9", "epsilon 1.63",
                 "“num-examples” 1", "noisy sums about a person"):
        assert said in told


def test_every_life_ends_with_a_no() -> None:
    over = {state for state in JobState if (state, JobEvent.SAID_NO) not in JOB_TABLE}
    assert over == {JobState.ENDED}
