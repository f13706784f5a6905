"""The people of a rehearsal as its report tells of them: made up, with one pattern that was put into their answers."""

from __future__ import annotations

import re
from typing import Final

from anon.study.manifest import Manifest

REHEARSAL: Final = "Rehearsal: "
"""The title of a rehearsal begins with it."""
_PLAIN = re.compile(r"\s*select\s+([a-z][a-z0-9_]*)\s+from\s+[a-z][a-z0-9_]*\s*;?\s*\Z", re.IGNORECASE)


def column_of(query: str) -> str | None:
    """The column that a query gives as it is; None for one that computes."""
    match = _PLAIN.match(query)
    return match.group(1).lower() if match else None


def made_up(study: Manifest) -> str:
    """How the people were made up (`aggregator.lab.synthetic`); empty for a study that is no rehearsal."""
    if study.addresses or not study.title.startswith(REHEARSAL):
        return ""
    columns = study.tables[0].columns
    first = next((feature.name for feature in study.features if column_of(feature.query) in columns), None)
    pattern = f"“{study.label.name}” goes with “{first}” in them, and with nothing else" if first else (
        "there is no pattern in their answers"
    )
    return f"It was a rehearsal: its people were made up by this program. {pattern[0].upper()}{pattern[1:]}."
