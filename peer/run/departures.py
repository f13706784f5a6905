"""When the packets of a study leave, and what stands beside them in their windows. Pure: clock and randomness come in.

Times are drawn before the data is looked at: nothing that follows from the data moves a packet.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.study.manifest import Manifest, Window
from anon.values import frozen
from peer.release import dummy
from peer.rules.schedule import RandomBytes, draw_send_time
from peer.run.plan import Slots, earliest, packets_in, places_in
from peer.store.outbox import Covering

LEAST_LEFT = 0.1
"""Seconds of a window in which a packet is still drawn again."""


@frozen
class DepartureTimes:
    """Draws times from `now` on (the study's time); the home's clock is `behind` that by so many seconds."""

    manifest: Manifest
    now: float
    behind: float
    random_bytes: RandomBytes

    def times(self, slots: Slots) -> dict[int, float | None]:
        """When the packets of these slots (slot, survey) leave; None where the window has passed."""
        return {slot: self.time(self.manifest.survey(survey).window) for slot, survey in slots}

    def time(self, window: Window) -> float | None:
        """A time within the window by the study's clock and by the home's; None when the two leave nothing of it."""
        low = max(self.now, earliest(self.manifest, window, self.behind))
        return draw_send_time(window, self.manifest.timetable.margin, low, self.random_bytes)

    def again(self, window: Window) -> float | None:
        """A time for a packet that had one before; None when hardly anything is left of the window."""
        if window.closes - self.manifest.timetable.margin - self.now < LEAST_LEFT:
            return None
        return self.time(window)

    def again_or_end(self, window: Window) -> float:
        """A time for the retry; the window's end, at which it is given up, when hardly anything is left."""
        send_at = self.again(window)
        return float(window.closes) if send_at is None else send_at

    def cover(self, window: Window, draws: Sequence[int]) -> list[Covering]:
        """The dummies or blanks that fill a window up beside the packets of these draws, at times drawn as packets'.

        With cover traffic dummies. Without it blanks, one for each slot that another draw would have put here. Heads
        and documents are fetched for them as for packets, so that no fetch depends on the draw. Nothing when the window
        has passed.
        """
        manifest, covering = self.manifest, list[Covering]()
        first = next(survey.survey for survey in manifest.surveys if survey.window == window)
        for _ in range(places_in(manifest, window) - packets_in(manifest, draws, window)):
            send_at = self.time(window)
            if send_at is None:
                return []
            sealed = dummy(manifest.study_id, manifest, window) if manifest.cover.connections else None
            covering.append(Covering(sealed, first, send_at))
        return covering
