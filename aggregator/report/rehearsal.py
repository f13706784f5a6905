"""The people of a rehearsal as its report tells of them: made up, with one pattern that was put into their answers."""

from __future__ import annotations

import re

from anon.study.manifest import Manifest
from anon.study.proposal import REHEARSAL, Proposal

_PLAIN = re.compile(r"\s*select\s+([a-z][a-z0-9_]*)\s+from\s+[a-z][a-z0-9_]*\s*;?\s*\Z", re.IGNORECASE)


def column_of(query: str) -> str | None:
    """The column that a query gives as it is; None for one that computes."""
    match = _PLAIN.match(query)
    return match.group(1).lower() if match else None


def planted(study: Proposal | Manifest) -> str:
    """The name of the one feature that the label of made-up people goes with (`aggregator.lab.synthetic`): a yes has
    three of four people in the upper half of its range or categories, and one of four in the lower half. Empty where
    it goes with none."""
    columns = study.tables[0].columns
    return next((feature.name for feature in study.features if column_of(feature.query) in columns), "")


def made_up(study: Manifest) -> str:
    """How the people were made up; empty for a study that is no rehearsal by its title, or that has an address."""
    if study.addresses or not study.title.startswith(REHEARSAL):
        return ""
    found = planted(study)
    pattern = f"the label “{study.label.name}” goes with “{found}”" if found else "their answers hold no pattern"
    made = f"Such people are made up by this program: {pattern}, and all else is chance."
    missed = " A report that finds nothing has missed that pattern." if found else ""
    declared = any(feature.expects for feature in study.features)
    apart = " They do not follow what the study declares: a declaration can look wrong here." if declared else ""
    return f"Its title says that this was a rehearsal. {made}{missed}{apart}"
