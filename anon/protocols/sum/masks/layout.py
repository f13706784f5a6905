"""The surveys of a sum under masks, and what the manifest says of it besides: `[least, honest, noise]`.

Five rounds, each with one survey of letters: keys, shares, the vector, who came, opening. The vector's survey says what
is added up as the survey of a sum does (`anon.protocols.sum.design`); its text has eight bytes for each entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from anon.accounting.shared_noise import LEAST_NOISE, shared_rho, shared_sigma_squared
from anon.accounting.zcdp import NanoRho
from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.errors import InvalidValue, Malformed
from anon.ldp import nano
from anon.protocols.contract import Layout
from anon.protocols.sum.arranged import DELTA, asked
from anon.protocols.sum.design import MOMENTS, demand_asked, shape_of
from anon.protocols.sum.masks.masking import LETTER, NEIGHBOURS, VECTOR, WIDTH
from anon.protocols.sum.masks.sections import FEWEST, SECTIONS, honest_of, least_of
from anon.protocols.sum.masks.sharing import SHARE
from anon.protocols.sum.parties import VOTES, WEIGHTS
from anon.study.designs import AskedSurvey, Tables
from anon.study.features import USUAL_MOST
from anon.study.manifest import LETTERS, Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.study.slots import Row, Slot
from anon.values import frozen
from anon.wire.cbor import decode, encode

ROUNDS: Final = ("telling keys", "sharing secrets", "sending", "saying who came", "opening")
KINDS: Final = ("keys", "shares", "", "came", "opening")
"""The kinds of surveys; that of the vector is a sum's."""
_LONGEST = 2**64
"""Of the noise's variance. It follows from the sensitivity, so the sum of a hundred thousand members stays below the
modulus' half."""


@frozen
class Masking:
    """The part of the manifest. `noise`: the variance of each member's, on each entry."""

    least: int
    honest: int
    noise: Fraction

    def to_bytes(self) -> bytes:
        """Canonical CBOR."""
        return encode([self.least, self.honest, *self.noise.as_integer_ratio()])


def masking_of(part: bytes) -> Masking:
    """Raises `Malformed`."""
    fields = decode(part, "masks")
    if not isinstance(fields, list) or len(fields) != 4 or not all(type(one) is int for one in fields):
        raise Malformed("masks: expected four numbers")
    least, honest, noise, per = fields
    if not 1 <= honest <= least <= USUAL_MOST or least < FEWEST or not 0 < noise < _LONGEST or not 0 < per < _LONGEST:
        raise Malformed("masks: expected honest members, no fewer in all, and noise")
    masking = Masking(least, honest, Fraction(noise, per))
    if masking.noise < LEAST_NOISE:
        raise Malformed("masks: expected a standard deviation of the noise of at least 1/2")
    if masking.to_bytes() != part:
        raise Malformed("masks: expected the one spelling")
    return masking


def lay_out(proposal: Proposal, windows: tuple[Window, ...]) -> Layout:
    """Surveys, slots and the part. Raises `Malformed`."""
    design = proposal.design
    if not isinstance(design, tuple(SECTIONS.values())):
        raise TypeError(f"no design of masks: {design.kind}")
    least = least_of(design.least, proposal.cohort)  # type: ignore[attr-defined]
    honest = honest_of(design.honest, least)  # type: ignore[attr-defined]
    kind, features, cards, parameters = asked(proposal)
    vector = Survey(VECTOR, kind, features, cards, 0, LETTERS, 0, 0, 0, windows[VECTOR], VECTOR, 1, parameters)
    try:
        shape = shape_of(vector)
        epsilon = nano(str(design.epsilon))  # type: ignore[attr-defined]
        noise = shared_sigma_squared(
            shape.sensitivity_squared("replace-one"), shape.length, epsilon, DELTA, honest
        )
    except InvalidValue as fault:
        raise Malformed(f"study.toml: design: {fault}; take fewer features or a smaller reach") from None
    masking = Masking(least, honest, noise)
    surveys = surveys_of(vector, windows, proposal.cohort.maximum, masking)
    return Layout(surveys, tuple(Slot(one.survey, (Row(one.survey, 1),)) for one in surveys), masking.to_bytes())


def surveys_of(vector: Survey, windows: Sequence[Window], maximum: int, masking: Masking) -> tuple[Survey, ...]:
    """All surveys of a study with this vector, cost and lengths recomputed. `maximum`: the most members."""
    seats, shape = min(maximum - 1, NEIGHBOURS), shape_of(vector)
    rho = rho_of(vector, masking)
    sizes = (PUBLIC_KEY_SIZE + 32, 32, WIDTH * shape.length, 32, SHARE * seats)
    return tuple(
        Survey(
            VECTOR, vector.kind, vector.features, vector.cards, 0, LETTERS, 0, 0, rho, window, VECTOR, size,
            vector.parameters,
        )
        if number == VECTOR
        else Survey(
            number, KINDS[number], (), (), seats if number == 1 else 0, LETTERS, 0, 0, 0, window, number, size,
            (LETTER,) if number == 1 else (),
        )
        for number, (size, window) in enumerate(zip(sizes, windows, strict=True))
    )  # fmt: skip


def rho_of(vector: AskedSurvey, masking: Masking) -> NanoRho:
    """The cost of the sum to one unit, which is replaced by another: with the noise of the honest members alone."""
    shape = shape_of(vector)
    return shared_rho(shape.sensitivity_squared("replace-one"), shape.length, masking.noise, masking.honest)


def vector_survey(study: Manifest) -> Survey:
    """The survey whose vectors are added up."""
    return study.survey(VECTOR)


def check(study: Manifest) -> None:
    """Raises `Malformed` unless the surveys are those of the vector, in rounds one after the other."""
    masking = masking_of(study.part)
    if masking.least > study.cohort.minimum or len(study.surveys) != len(ROUNDS):
        raise Malformed("manifest: its members are too few to open what they add up; do not take part")
    windows = [survey.window for survey in study.surveys]
    if study.surveys != surveys_of(vector_survey(study), windows, study.cohort.maximum, masking):
        raise Malformed("manifest: its surveys are not those of masks; do not take part")
    if any(before.closes >= after.opens for before, after in pairwise(windows)):
        raise Malformed("manifest: a round opens before the one before it has closed; do not take part")
    if [slot.rows for slot in study.slots] != [(Row(number, 1),) for number in range(len(ROUNDS))]:
        raise Malformed("manifest: its slots ask something else; do not take part")


def moments_form(cards: Mapping[str, int], tables: Tables) -> None:
    """The form of `masked-moments`: five slots, the third as a sum has it. Raises `InvalidValue`."""
    _demand_form(cards, tables, MOMENTS)


def averaging_form(cards: Mapping[str, int], tables: Tables) -> None:
    """The form of `masked-averaging`. Raises `InvalidValue`."""
    _demand_form(cards, tables, WEIGHTS)


def transfer_form(cards: Mapping[str, int], tables: Tables) -> None:
    """The form of `masked-transfer`. Raises `InvalidValue`."""
    _demand_form(cards, tables, VOTES)


def _demand_form(cards: Mapping[str, int], tables: Tables, kind: str) -> None:
    if [survey.kind for surveys in tables for survey in surveys] != [one or kind for one in KINDS]:
        raise InvalidValue("design: expected keys, shares, a vector, who came, and opening, each in a slot of its own")
    demand_asked(cards, tables[VECTOR][0], kind)
