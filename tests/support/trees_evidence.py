"""The same claims where members post trees: the list is the page, and the result is what the page gives."""

from __future__ import annotations

from attrs import define

from aggregator.protocols.trees import published_rows, read_trees
from anon.protocols.board import BoardPage, pages_in
from anon.protocols.trees.layout import plan_for
from tests.support.sum_evidence import Evidence


@define
class TreesEvidence(Evidence):
    """See `Evidence`."""

    @property
    def page(self) -> BoardPage:
        """The one page."""
        return pages_in(self.study.manifest, self.study.documents())[0]

    def listed(self, turn: int) -> list[bytes]:
        """The tags on the page."""
        return list(self.page.texts(turn))

    def told(self, turn: int) -> dict[str, bytes]:
        """The trees."""
        return {f"tree of {tag.hex()[:8]}": text for tag, text in self.page.texts(turn).items()}

    def secrets(self, turn: int, peer: int) -> dict[str, bytes]:
        """The exact numbers of each record."""
        return self.rows(peer)

    def _demand_one_noise(self, turn: int) -> None:
        """Noise is in the one text: each member on the page has one, by `_demand_away_silent`."""

    def _demand_exact(self, turn: int) -> None:
        """Each text is a tree, and the published rows are those of all."""
        study = self.study.manifest
        roots = read_trees(plan_for(study), self.page)
        assert len(roots) == len(self.listed(turn))
        rows = published_rows(study, roots, self.page)
        assert self.study.documents()["rows", 0] == rows.to_json().encode()
