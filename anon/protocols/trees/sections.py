"""The section of a study file whose members publish private trees of their records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from attrs import field

from anon.errors import InvalidValue
from anon.ldp import nano
from anon.study.features import demand_features
from anon.study.manifest import Window
from anon.study.proposal import MAX_EPSILON, DesignSection, Proposal, epsilon_in_range
from anon.study.records import MOST_RECORDS, RECORD
from anon.values import frozen

DESIGN: Final = "trees"
MOST_DEPTH: Final = 7
MOST_OF_TREE: Final = 10_000


@frozen
class Trees(DesignSection):
    """Each member publishes one private tree of its records. Rows are drawn from all trees, and labelled by them.

    `target`: the feature whose bins or categories stand in the label's place. Left out, the label does. `rows`: the
    most rows of one tree. `depth`: the most splits on a path.
    """

    takes_many: ClassVar[bool] = True
    most_of_member: ClassVar[int] = MOST_RECORDS
    epsilon: float = field(default=1.0, validator=epsilon_in_range)
    target: str = ""
    rows: int = 500
    depth: int = MOST_DEPTH

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.rows <= MOST_OF_TREE or not 1 <= self.depth <= MOST_DEPTH:
            raise InvalidValue(f"rows, depth: expected 1 to {MOST_OF_TREE} rows, and 1 to {MOST_DEPTH} splits a path")

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        from anon.protocols.trees.layout import demand_time, survey_of  # late: other studies load nothing of it

        demand_features(proposal.features)
        if proposal.many is None or proposal.unit != RECORD:
            raise InvalidValue('unit: a tree protects each record by itself; write records = "many", unit = "record"')
        if proposal.binned:
            raise InvalidValue(f"features: trees have declared cuts; write cuts of {', '.join(proposal.binned)}")
        demand_time(proposal.many.most, proposal.schedule.settle)
        epsilon = nano(str(self.epsilon))
        survey_of(proposal.features, self.target, self.depth, self.rows, epsilon, Window(0, 1))


WORDS: Final[Mapping[str, str]] = {
    "kind": "Private trees of members' records, published; rows that stand for nobody are drawn from them.",
    "epsilon": "Of each record of a member, replaced by another: whoever else is dishonest.",
    "target": "The feature that takes the label's place in the rows; left out, the label is predicted.",
    "rows": "The most rows that one tree stands for.",
    "depth": "The most splits on a path of a tree.",
}
"""A sentence for every key."""
BOUNDS: Final[Mapping[str, Mapping[str, object]]] = {
    "epsilon": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
    "rows": {"minimum": 1, "maximum": MOST_OF_TREE},
    "depth": {"minimum": 1, "maximum": MOST_DEPTH},
}
