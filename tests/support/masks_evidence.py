"""The same claims where vectors are added up under masks: the lists are pages, and the noise is the peers' own."""

from __future__ import annotations

from attrs import define

from anon.protocols.board import BoardPage, read_page
from anon.protocols.sum.masks.layout import masking_of
from anon.protocols.sum.masks.masking import VECTOR, came, opened
from tests.support.sum_evidence import Evidence, drawn_in
from tests.support.views import of_integers


@define
class MasksEvidence(Evidence):
    """See `Evidence`."""

    @property
    def pages(self) -> dict[int, BoardPage]:
        """Every page that was published."""
        documents = self.study.documents()
        study = self.study.manifest
        return {part: read_page(study, part, body) for (kind, part), body in documents.items() if kind == "page"}

    def listed(self, turn: int) -> list[bytes]:
        """The tags on the page of a round."""
        return list(self.pages[turn].texts(turn))

    def noise(self, peer: int) -> tuple[int, ...]:
        """The one noise that a peer drew, also where it drew it again."""
        (notes,) = self.study.folder.glob(f"peers-*/{peer}.noise")
        (drawn,) = {tuple(one) for one in drawn_in(notes)}
        return drawn

    def secrets(self, turn: int, peer: int) -> dict[str, bytes]:
        """Also the vector with its noise, as it stands under its masks."""
        noisy = [entry + drawn for entry, drawn in zip(self.vector(turn, peer), self.noise(peer), strict=True)]
        return super().secrets(turn, peer) | of_integers(f"peer {peer}'s noisy vector", noisy)

    def told(self, turn: int) -> dict[str, bytes]:
        """The vectors under their masks."""
        return {f"text of {tag.hex()[:8]}": text for tag, text in self.pages[turn].texts(turn).items()}

    def _demand_one_noise(self, turn: int) -> None:
        """Noise was drawn by those who sent a vector, and at most by peers that went with it unsent."""
        if turn != VECTOR:
            return
        drew = {int(notes.stem) for notes in self.study.folder.glob("peers-*/[0-9]*.noise")}
        unsent = drew - {*self.left[VECTOR].values()}
        assert drew >= {*self.left[VECTOR].values()} and unsent <= self.study.plan.gone.keys()

    def _demand_exact(self, turn: int) -> None:
        """The opened sum without the noise of those who came is the exact sum of their vectors."""
        if turn != VECTOR:
            return
        study, pages, tags = self.study.manifest, self.pages, self.listed(turn)
        least, exact = masking_of(study.part).least, self.exact(turn, tags)
        assert [*came(pages, least)] == tags
        drawn = [sum(entries) for entries in zip(*(self.noise(self.left[turn][tag]) for tag in tags), strict=True)]
        found = opened(study.study_id, pages, least, len(exact))
        assert found == [entry + noise for entry, noise in zip(exact, drawn, strict=True)]
