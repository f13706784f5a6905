"""Tables as a sum: for each block of features a count of everybody by category, one cell of each block a person.

A person's vector holds a single one in each block, so the sum of a block is a table of counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import prod

from attrs import field

from anon.errors import InvalidValue, Malformed
from anon.noise.scaling import Neighbours
from anon.values import frozen


@frozen
class Block:
    """One table: a cell for each combination of categories of these features, and of the label if it is `labelled`.

    The last feature, or the label, varies fastest. Raises `InvalidValue` for a table of fewer than two cells, or a
    feature named twice.
    """

    features: tuple[str, ...]
    cards: tuple[int, ...]
    labelled: bool = True

    def __attrs_post_init__(self) -> None:
        if len(self.features) != len(self.cards) or len(set(self.features)) != len(self.features):
            raise InvalidValue("block: expected features without repeats, and a number of categories of each")
        if min(self.cards, default=1) < 1 or self.length < 2:
            raise InvalidValue("block: expected at least two cells")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of categories of each feature, and 2 for the label."""
        return (*self.cards, 2) if self.labelled else self.cards

    @property
    def length(self) -> int:
        """The number of cells."""
        return prod(self.shape)

    def place(self, categories: Mapping[str, int], label: int) -> int:
        """Return a person's cell. Raises `Malformed` for a missing or impossible category or label."""
        index = 0
        named = [(categories.get(name, -1), card) for name, card in zip(self.features, self.cards, strict=True)]
        for category, card in [*named, (label, 2)][: len(self.shape)]:
            if not 0 <= category < card:
                raise Malformed(f"block of {', '.join(self.features)}: expected a category from 0 to {card - 1}")
            index = index * card + category
        return index


@frozen
class TableSums:
    """The tables that one sum holds. The unit is a person, who has one record.

    Raises `InvalidValue` without a block, or for one that is named twice.
    """

    blocks: tuple[Block, ...] = field()

    def __attrs_post_init__(self) -> None:
        if not self.blocks or len(set(self.blocks)) != len(self.blocks):
            raise InvalidValue("blocks: expected at least one, and none twice")

    @property
    def lengths(self) -> tuple[int, ...]:
        """The cells of each block, as the proof of validity needs them."""
        return tuple(block.length for block in self.blocks)

    @property
    def length(self) -> int:
        """All cells."""
        return sum(self.lengths)

    @property
    def norm_squared(self) -> int:
        """One for each block: attained by every person."""
        return len(self.blocks)

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Two for each block if a person is replaced, else one. Attained; there is no rounding."""
        return len(self.blocks) * (2 if neighbours == "replace-one" else 1)

    def changed(self, neighbours: Neighbours) -> int:
        """Each by one: as many as the squared sensitivity."""
        return self.sensitivity_squared(neighbours)

    def places(self, categories: Mapping[str, int], label: int) -> tuple[int, ...]:
        """Return a person's cell in each block. Raises `Malformed` for a missing or impossible category or label."""
        return tuple(block.place(categories, label) for block in self.blocks)

    def vector(self, categories: Mapping[str, int], label: int) -> list[int]:
        """Return a person's contribution: the cells of all blocks, a single one in each."""
        places = zip(self.lengths, self.places(categories, label), strict=True)
        return [int(cell == place) for length, place in places for cell in range(length)]

    def split(self, sums: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the cells of each block. Raises `Malformed` for sums of another length."""
        if len(sums) != self.length:
            raise Malformed(f"sums: expected {self.length} cells, got {len(sums)}")
        ends = pairwise(accumulate(self.lengths, initial=0))
        return tuple(tuple(sums[start:end]) for start, end in ends)


def marginals_of(cards: Mapping[str, int], pairs: Sequence[tuple[str, str]] = ()) -> TableSums:
    """Return a table of each pair with the label, and one with the label of each feature that is in no pair."""
    paired = {name for pair in pairs for name in pair}
    singles = (Block((name,), (card,)) for name, card in cards.items() if name not in paired)
    return TableSums((*(Block(pair, (cards[pair[0]], cards[pair[1]])) for pair in pairs), *singles))


def tables_of(cards: Mapping[str, int], pairs: Sequence[tuple[str, str]] = ()) -> TableSums:
    """Return a table of each feature with the label, and of each pair without it."""
    singles = [Block((name,), (card,)) for name, card in cards.items()]
    return TableSums((*singles, *(Block(pair, (cards[pair[0]], cards[pair[1]]), False) for pair in pairs)))
