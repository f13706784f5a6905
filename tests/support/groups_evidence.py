"""The same claims where members average in groups: the lists are pages, and the noise is that of receivers."""

from __future__ import annotations

from itertools import combinations

from attrs import define, field

from anon.protocols.board import BoardPage, pages_in
from anon.protocols.sum.groups.drawing import KEYS, SHARES, TOLD, Group, came, step_of, survey_of, told
from anon.protocols.sum.groups.layout import weights_survey
from anon.protocols.sum.groups.shared import drawn_groups
from anon.study.manifest import Manifest
from tests.support.sum_evidence import Evidence, drawn_in


@define
class GroupsEvidence(Evidence):
    """See `Evidence`. `lost`: receivers that were killed in the window of their sum, and never came back."""

    lost: list[int] = field(factory=list)

    @property
    def manifest(self) -> Manifest:
        return self.study.manifest

    @property
    def pages(self) -> dict[int, BoardPage]:
        """Every page that was published."""
        return pages_in(self.manifest, self.study.documents())

    def listed(self, turn: int) -> list[bytes]:
        """The tags on the page of a round."""
        return list(self.pages[turn].texts(turn))

    def groups(self, aggregation: int) -> tuple[Group, ...]:
        """All that were drawn."""
        return drawn_groups(self.manifest, aggregation, self.pages)

    def drawn(self) -> list[tuple[int, ...]]:
        """Each noise that a peer drew, once, also where it was drawn again. No note says whose it is."""
        return sorted({tuple(one) for path in self.study.folder.glob("peers-*/*.noise") for one in drawn_in(path)})

    def secrets(self, turn: int, peer: int) -> dict[str, bytes]:
        """A member's weights, as it makes and as it tells them, and its records."""
        return super().secrets(turn, peer) | self.rows(peer)

    def demand_unseen(self, turn: int) -> None:
        """See `Evidence`. Nor does any of it stand in another member's home."""
        super().demand_unseen(turn)
        self.demand_unseen_by_members(turn)

    def told(self, turn: int) -> dict[str, bytes]:
        """The texts of a round."""
        return {f"text of {tag.hex()[:8]}": text for tag, text in self.pages[turn].texts(turn).items() if any(text)}

    def _demand_one_noise(self, turn: int) -> None:
        """Noise was drawn by receivers who told a sum, once by each, and by no other member but those in `lost`."""
        if turn == weights_survey(self.manifest).survey:
            without = len(self.drawn()) - sum(len(self.told(survey_of(at, TOLD))) for at in range(2))
            assert 0 <= without <= len(self.lost)

    def _demand_exact(self, turn: int) -> None:
        """Each group's sum without two receivers' noise is the exact sum of those who came."""
        if turn == KEYS or step_of(turn)[1] != TOLD:
            return
        pages, numbers = self.pages, self.left[KEYS]
        shared = self.listed(survey_of(step_of(turn)[0], SHARES))
        for group in self.groups(step_of(turn)[0]):
            values, tags = told(pages, group), came(pages, group)
            assert (values is None) == any(tag not in self.listed(turn) for tag in group.receivers)
            assert set(tags) == {*group.members} & {*shared}
            if values is not None:
                vectors = [self.vector(turn, numbers[tag]) for tag in tags]
                exact = [sum(entries) for entries in zip(*vectors, strict=True)]
                rest = tuple(value - entry for value, entry in zip(values, exact, strict=True))
                draws = combinations(self.drawn(), len(group.receivers))
                assert [tuple(map(sum, zip(*draw, strict=True))) for draw in draws].count(rest) == 1
