"""The surveys of oblivious averaging. All follow from that of weights, the cohort's maximum and the key's bits.

Seven rounds. The third has two surveys, which alone read the records and cost the whole epsilon; the last is that of
weights (`anon.protocols.sum.parties`), in whose texts they are added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isqrt
from typing import Final

from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.errors import InvalidValue, Malformed
from anon.ldp import nano
from anon.protocols.contract import Layout
from anon.protocols.sum.arranged import asked
from anon.protocols.sum.design import demand_asked, is_of_declared
from anon.protocols.sum.oblivious.messages import (
    AGREED,
    NAME,
    OPENING,
    POSTED,
    ROUND_OF,
    SHORT,
    epsilon_of,
    framed,
    spread,
    weights_of,
    weights_survey,
)
from anon.protocols.sum.oblivious.sections import FEWEST, KEY_BITS, MOST, ObliviousAveraging, demand_bits
from anon.protocols.sum.parties import WEIGHTS
from anon.study.designs import Tables
from anon.study.manifest import LETTERS, Manifest, Survey, Window
from anon.study.manifest import POSTED as BY_TOKEN
from anon.study.proposal import Proposal
from anon.study.records import RECORD
from anon.study.slots import Row, Slot

ROUNDS: Final = (
    "telling keys", "agreeing on an order", "sharing", "permuting", "comparing", "choosing noise", "opening",
)  # fmt: skip
_KINDS: Final = ("keys", "agreed", "shares", "posted", "permuted", "compared", "noise", WEIGHTS)
_SLOTS: Final = tuple(Slot(number, (Row(number, 1),)) for number in range(len(_KINDS)))
_LARGEST: Final = 2**62
"""Of a sum's entry. Noise is longer than twice its mean and 128 scales with chance e^-100."""


def lay_out(proposal: Proposal, windows: tuple[Window, ...]) -> Layout:
    """Surveys and slots. Raises `Malformed`."""
    design = proposal.design
    if not isinstance(design, ObliviousAveraging):
        raise TypeError(f"no design of oblivious averaging: {design.kind}")
    kind, features, cards, parameters = asked(proposal)
    weights = Survey(OPENING, kind, features, cards, 0, LETTERS, 0, 0, 0, windows[-1], 6, 1, parameters)
    epsilon, most = nano(str(design.epsilon)), proposal.cohort.maximum
    return Layout(surveys_of(weights, windows, most, design.key_bits // 8, epsilon), _SLOTS)


def surveys_of(
    weights: Survey, windows: Sequence[Window], most: int, modulus: int, epsilon: int
) -> tuple[Survey, ...]:
    """All surveys of a study with these weights. `windows`: by round; `most`: parties. Raises `Malformed` where an
    entry has no room for its noise."""
    frame, shape = framed(weights, modulus), weights_of(weights)
    room = _LARGEST - MOST * (isqrt(shape.norm_squared) + 1)
    if epsilon < 2 or spread(shape, shape.fewest, epsilon) * (2 * shape.length + 128) > room:
        raise Malformed("study.toml: design.epsilon: so small a one needs more noise than a sum can have; raise it")
    plan = (
        (PUBLIC_KEY_SIZE + NAME, 0, 0, 0),
        (modulus, most, MOST + modulus // 2, 0),
        (1, most + 1, 2 * SHORT + frame.vector, epsilon - epsilon // 2),
        (1, 1, 1 + SHORT, epsilon // 2),
        (2 * modulus, 0, 0, 0),
        (most // 2 * frame.question, 0, 0, 0),
        (1, 1, 2 * frame.vector, 0),
        (3 * frame.vector, 0, 0, 0),
    )  # the text's bytes, seats, a letter's bytes, the cost
    return tuple(
        Survey(
            number, kind, weights.features if number == OPENING else (), weights.cards if number == OPENING else (),
            seats, BY_TOKEN if number == POSTED else LETTERS, 0, 0, cost, windows[at], at, size,
            weights.parameters if number == OPENING else (letter,) if seats else (),
        )
        for number, (kind, at, (size, seats, letter, cost)) in enumerate(zip(_KINDS, ROUND_OF, plan, strict=True))
    )  # fmt: skip


def check(study: Manifest) -> None:
    """Raises `Malformed` unless the surveys are those of the weights, in rounds one after the other."""
    cohort, records, modulus = study.cohort, study.records, study.survey(AGREED).size
    demand_bits(8 * modulus)
    if study.address and 8 * modulus != KEY_BITS:
        raise Malformed(f"manifest: keys of fewer than {KEY_BITS} bits are for one machine; do not take part")
    if not FEWEST <= cohort.minimum <= cohort.maximum <= MOST or records is None or records.unit != RECORD:
        raise Malformed("manifest: it hides no record of a party among so many parties; do not take part")
    weights, epsilon = weights_survey(study), epsilon_of(study.surveys)
    windows = [study.surveys[ROUND_OF.index(number)].window for number in range(len(ROUNDS))]
    surveys = surveys_of(weights, windows, cohort.maximum, modulus, epsilon)
    if study.surveys != surveys or study.slots != _SLOTS or study.part or not is_of_declared(weights, records):
        raise Malformed("manifest: its surveys are not those of oblivious averaging; do not take part")
    if any(before.closes >= after.opens for before, after in pairwise(windows)):
        raise Malformed("manifest: a round opens before the one before it has closed; do not take part")


def form(cards: Mapping[str, int], tables: Tables) -> None:
    """The form of the one design. Raises `InvalidValue`."""
    if [[survey.kind for survey in surveys] for surveys in tables] != [[kind] for kind in _KINDS]:
        raise InvalidValue("design: expected eight slots, of which the last adds up weights")
    demand_asked(cards, tables[OPENING][0], WEIGHTS)
