"""A study's own dates, held against this machine's clock.

The staff's program hands the roster on once enrolment has ended, and the packets of a round once the round is closed,
by its own clock. A teller that has them earlier knows that the staff's clock runs ahead. So it does in a rehearsal and
in a dry round. No member's program, whose clock is its own, answers so early.
"""

from __future__ import annotations

from collections.abc import Iterable

from anon.study.manifest import Manifest


def runs_ahead(manifest: Manifest, rounds: Iterable[int], at: float) -> bool:
    """True where the roster, and packets of these rounds, were here too early at this instant (unix seconds).

    Clocks may differ by the study's margin. A study that was early is not told from others once its dates have passed.
    """
    table, begun = manifest.timetable, set(rounds)
    closed = [survey.window.closes for survey in manifest.surveys if survey.round in begun]
    return at < max([table.enrol_closes, *closed]) - table.margin
