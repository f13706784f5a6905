"""A federated job as its owner is asked about it: what each message is, how it is protected, and what it costs.

Pure. A message is one vector: all declared arrays, one after the other. It is shrunk to `norm` and gets exact noise
(`anon.noise`), as the sums of a study do. One message is replaced by any other message within the norm, whatever the
data are. So its rho holds for everything that the node holds, and for each person and each record in it.
"""

from __future__ import annotations

import hashlib
import struct
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any, Final

from attrs import field

from anon.accounting.zcdp import gaussian_rho, rho_within
from anon.crypto.labels import FEDERATED_JOB
from anon.errors import InvalidValue
from anon.ldp.epsilon import NANO, nano
from anon.noise import DiscreteGaussian, RandomBytes, Scaling
from anon.protocols.charge import Budget, Measure, Unit
from anon.protocols.cost_words import DELTA, Amount, with_odds
from anon.study.features import demand_line
from anon.text.foreign import Quoted, fault
from anon.text.sentences import Figure, Sentence, joined, say, say_many
from anon.values import frozen
from anon.wire.cbor import decode, encode
from peer.rules.promise import budget_name

MOST_NUMBERS: Final = 2**22
"""Of a message. Exact noise takes some 12 microseconds for each of them."""
MOST_ARRAYS: Final = 1000
"""Of a message, and of its constants: an owner reads all their names."""
MOST_ROUNDS: Final = 10_000
MOST_RHO: Final = 100 * NANO
_NORMS: Final = (Fraction(1, 2**30), Fraction(2**30))
_FINE: Final = 64
"""The norm in steps of the grid, over the root of the length: rounding lengthens no message by a hundredth."""
_KINDS: Final = {"float32": "f", "float64": "d"}
_LARGEST: Final = {"float32": float.fromhex("0x1.fffffep+127"), "float64": float.fromhex("0x1.fffffffffffffp+1023")}
_LONGEST_NAME: Final = 200


def _constant(_: object, attribute: object, constants: Mapping[str, float]) -> None:
    for name, value in constants.items():
        demand_name(name)
        if type(value) not in (int, float) or not isfinite(value):
            raise InvalidValue("federated.constants: expected finite numbers")


def demand_name(name: object) -> None:
    """Raises `InvalidValue` for a name that is not one short line of characters that are seen."""
    if not isinstance(name, str) or not name or fault(name):
        raise InvalidValue("federated: expected names of characters that are seen")
    demand_line("federated", name, _LONGEST_NAME)


@frozen
class DeclaredArray:
    """One array of each message. Raises `InvalidValue` for what is none, or not of floating numbers."""

    name: str
    shape: tuple[int, ...] = field(converter=tuple)
    dtype: str = "float32"

    def __attrs_post_init__(self) -> None:
        demand_name(self.name)
        if self.dtype not in _KINDS or any(type(wide) is not int or wide < 1 for wide in self.shape):
            raise InvalidValue(f"federated.arrays: expected shapes of 1 and more, and one of {', '.join(_KINDS)}")

    @property
    def size(self) -> int:
        """Its numbers."""
        size = 1
        for wide in self.shape:
            size *= wide
        return size

    @property
    def width(self) -> int:
        """Its bytes."""
        return self.size * struct.calcsize(_KINDS[self.dtype])

    def packed(self, values: Sequence[float]) -> bytes:
        """The numbers as bytes, lowest byte first; one beyond the kind's range becomes its end."""
        most = _LARGEST[self.dtype]
        return struct.pack(f"<{self.size}{_KINDS[self.dtype]}", *(min(max(value, -most), most) for value in values))


def _all(arrays: Iterable[DeclaredArray]) -> tuple[DeclaredArray, ...]:
    return tuple(arrays)


@frozen
class OfferedArray:
    """An array that training would send, as its framework describes it; `values` are read only after its form."""

    dtype: str
    shape: tuple[int, ...]
    values: Sequence[float] = field(repr=False)


@frozen
class Offer:
    """All that training would send: arrays by name, and the names of everything else."""

    arrays: Mapping[str, OfferedArray]
    others: frozenset[str] = frozenset()


UNREADABLE: Final = frozenset({"something that is no array"})
"""The other things of an offer that cannot be read."""


@frozen
class JobTerms:
    """The terms of a job. `asked_by` says who runs its server, in their own words.

    `norm`: the longest message in L2, all arrays together; longer ones are shrunk. `rho`: of each round, a count of
    1e-9. `constants`: numbers sent in place of all metrics. `relative`: the message is the change against the arrays
    that the server sent, and leaves added to them. `unit` names the budget. Raises `InvalidValue`.
    """

    title: str
    asked_by: str
    arrays: tuple[DeclaredArray, ...] = field(converter=_all)
    norm: Fraction
    rounds: int
    rho: int
    unit: Unit = field(default=Unit.PERSON, converter=Unit)
    constants: Mapping[str, float] = field(factory=dict, converter=dict, validator=_constant)
    relative: bool = False
    scaling: Scaling = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        demand_name(self.title)
        demand_name(self.asked_by)
        names = {array.name for array in self.arrays}
        length = sum(array.size for array in self.arrays)
        if len(names) != len(self.arrays) or not 1 <= length <= MOST_NUMBERS:
            raise InvalidValue(f"federated.arrays: expected 1 to {MOST_NUMBERS} numbers, and no name twice")
        if max(len(self.arrays), len(self.constants)) > MOST_ARRAYS:
            raise InvalidValue(f"federated: expected at most {MOST_ARRAYS} arrays and as many constants")
        if not _NORMS[0] <= self.norm <= _NORMS[1]:
            raise InvalidValue("federated.norm: expected a length from 2^-30 to 2^30")
        if type(self.rounds) is not int or not 1 <= self.rounds <= MOST_ROUNDS:
            raise InvalidValue(f"federated.rounds: expected 1 to {MOST_ROUNDS}")
        if type(self.rho) is not int or not 1 <= self.rho <= MOST_RHO or type(self.relative) is not bool:
            raise InvalidValue("federated.rho: expected above 0 and at most 100, and relative true or false")
        scale = 1
        while (scale * self.norm) ** 2 < _FINE**2 * length:
            scale *= 2
        object.__setattr__(self, "scaling", Scaling(length, scale, self.norm))

    @property
    def length(self) -> int:
        """The numbers of a message."""
        return self.scaling.length

    @property
    def job(self) -> bytes:
        """Its id: other terms are another job."""
        return hashlib.sha256(FEDERATED_JOB + self.to_bytes()).digest()

    @property
    def budget(self) -> Budget:
        """The budget that it is taken from."""
        return Budget(Measure.ZCDP, self.unit)

    @property
    def each(self) -> Amount:
        """The cost of a round."""
        return Amount(self.budget, self.rho)

    @property
    def total(self) -> Amount:
        """The cost of all rounds: rho adds up, also where later rounds depend on earlier ones."""
        return Amount(self.budget, self.rho * self.rounds)

    @property
    def noise(self) -> DiscreteGaussian:
        """The noise on each number, in steps of the grid: as much as the declared rho of a replaced message needs."""
        squared = self.scaling.sensitivity_squared("replace-one")
        noise = DiscreteGaussian(Fraction(squared * NANO, 2 * self.rho))
        assert gaussian_rho(squared, noise.sigma_squared) <= self.rho
        return noise

    def fault(self, offer: Offer) -> Sentence | None:
        """The first thing of an offer that was not declared: a name, a kind, a shape. No value is looked at."""
        declared = {array.name: array for array in self.arrays}
        for name, offered in offer.arrays.items():
            known = declared.pop(name, None)
            if known is None:
                return say("the array {name} is not declared", name=Quoted(name))
            if (offered.dtype, offered.shape) != (known.dtype, known.shape):
                return say(
                    "the array {name} is declared as {declared} and came as {came}",
                    name=Quoted(name),
                    declared=_form(known.dtype, known.shape),
                    came=_form(offered.dtype, offered.shape),
                )
        for name in declared:
            return say("the declared array {name} is missing", name=Quoted(name))
        for name in sorted(offer.others - self.constants.keys()):
            return say("{name} is not declared", name=Quoted(name))
        return None

    def perturbed(
        self, offer: Offer | None, base: Mapping[str, Sequence[float]] | None, random_bytes: RandomBytes
    ) -> bytes:
        """The message: clipped, with noise, in the bytes of the declared arrays. Its length never varies.

        `offer` passed `fault`; None is the declared missing answer, zeros, and so is every value that is not finite.
        `base`: what the server sent, where the job is relative.
        """
        sent = [base[array.name] for array in self.arrays] if base else []
        under = [number for numbers in sent for number in _finite(numbers)] or [0.0] * self.length
        exact = [0] * self.length
        if offer is not None:
            values = [value for array in self.arrays for value in offer.arrays[array.name].values]
            exact = self.scaling.integers([value - known for value, known in zip(values, under, strict=True)])
        noise = self.noise.vector(self.length, random_bytes)
        noisy = [
            known + (value + added) / self.scaling.scale
            for known, value, added in zip(under, exact, noise, strict=True)
        ]
        parts, start = [], 0
        for array in self.arrays:
            parts.append(array.packed(noisy[start : start + array.size]))
            start += array.size
        return b"".join(parts)

    def split(self, message: bytes) -> dict[str, bytes]:
        """The bytes of each array."""
        parts, start = {}, 0
        for array in self.arrays:
            parts[array.name] = message[start : start + array.width]
            start += array.width
        return parts

    def sentences(self) -> tuple[Sentence, ...]:
        """The terms in plain words, for the owner."""
        arrays = joined(
            (
                say("{name} ({size})", name=Quoted(array.name), size=_size(array.shape)) for array in self.arrays
            ),
            ", ",
        )
        constants = joined(
            (say("{name} {value}", name=Quoted(name), value=value) for name, value in self.constants.items()), ", "
        )
        return (
            say_many(
                "In {count} round one message of {length} numbers leaves this computer: {arrays}.",
                "In each of {count} rounds one message of {length} numbers leaves this computer: {arrays}.",
                self.rounds, length=Figure(f"{self.length:,}"), arrays=arrays,
            ),
            say(
                "Before anything leaves, the message is shrunk to a length of at most {norm} and gets noise, on this "
                "computer. The server sees it with the noise only.",
                norm=Figure(f"{float(self.norm):g}"),
            ),
            say("Each round costs {cost}.", cost=with_odds(self.each)),
            say("All rounds together cost {cost}.", cost=with_odds(self.total)),
            say("It hides all that this computer holds, and so each person and each record in it."),
            say("It is taken from your budget for {budget}.", budget=budget_name(self.budget)),
            *([say("Beside it go the same numbers each time: {constants}.", constants=constants)] if constants else []),
            say("Anything else is refused, and you are told."),
            say("The server sees that you take part, how long training takes, and that a round was refused."),
        )

    def to_bytes(self) -> bytes:
        """Its one spelling."""
        return encode([
            self.title, self.asked_by, [[array.name, [*array.shape], array.dtype] for array in self.arrays],
            [self.norm.numerator, self.norm.denominator], self.rounds, self.rho, str(self.unit),
            [[name, value] for name, value in self.constants.items()], self.relative,
        ])

    @classmethod
    def from_bytes(cls, data: bytes) -> JobTerms:
        """The declaration of its spelling. Raises `Malformed`."""
        title, asked_by, arrays, norm, rounds, rho, unit, constants, relative = decode(data, "federated job")
        made = tuple(DeclaredArray(name, shape, dtype) for name, shape, dtype in arrays)
        return cls(title, asked_by, made, Fraction(*norm), rounds, rho, unit, dict(constants), relative)


def declaration_of(given: JobTerms | Mapping[str, Any] | str | Path) -> JobTerms:
    """A declaration, or the one that a mapping or a TOML file holds. Raises `InvalidValue`, `Refused`, `OSError`.

    Keys are those of `JobTerms`. Of `rho` and `epsilon` one is given, for each round; epsilon counts at delta 1e-6.

    >>> job = declaration_of({"title": "Hearts", "asked_by": "a hospital", "norm": 1, "rounds": 10, "rho": "0.01",
    ...     "arrays": {"weight": {"shape": [10, 4]}}, "constants": {"num-examples": 1}})
    >>> job.length, job.total.amount, len(job.perturbed(None, None, __import__("os").urandom))
    (40, 100000000, 160)
    """
    if isinstance(given, JobTerms):
        return given
    if isinstance(given, str | Path):
        try:
            given = tomllib.loads(Path(given).expanduser().read_text("utf-8"))
        except ValueError as error:  # of letters as well
            raise InvalidValue(f"federated: the declaration is not TOML: {error}; correct the file") from None
        except RecursionError:
            raise InvalidValue("federated: the declaration is not TOML: nested too deeply; correct the file") from None
    terms = dict(given)
    try:
        arrays = [DeclaredArray(name, **form) for name, form in terms.pop("arrays").items()]
        costs = [terms.pop(name) for name in ("rho", "epsilon") if name in terms]
        if len(costs) != 1:
            raise InvalidValue("federated: expected rho or epsilon of each round, and not both")
        rho = nano(costs[0]) if "rho" in given else rho_within(nano(costs[0]), DELTA)
        return JobTerms(arrays=arrays, rho=rho, norm=_fraction(terms.pop("norm")), **terms)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue(
            "federated: expected title, asked_by, arrays, norm, rounds, and rho or epsilon; and if wanted unit, "
            "constants, relative"
        ) from None


def _fraction(norm: object) -> Fraction:
    try:
        return Fraction(Decimal(str(norm)))
    except (InvalidOperation, ValueError, OverflowError):
        raise InvalidValue("federated.norm: expected a number") from None


def _size(shape: Sequence[int]) -> Figure:
    return Figure(" x ".join(map(str, shape or (1,))))


def _form(dtype: str, shape: Sequence[int]) -> Quoted:
    return Quoted(f"{dtype} {' x '.join(map(str, shape)) or 'a single number'}")


def _finite(numbers: Sequence[float]) -> list[float]:
    """The server sent them, so they are no secret. One that is no number counts as 0."""
    return [number if isfinite(number) else 0.0 for number in numbers]
