"""The toy `letters` between separate apps over loopback, with the audit of an export at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.audit import audit
from aggregator.audit.exporting import export_study
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from tests.support.course import course, live_on
from tests.support.letters_world import PROTOCOLS, STUDY, learned
from tests.support.world import published

pytestmark = pytest.mark.slow


async def test_a_whole_study_over_loopback_is_audited(tmp_path: Path) -> None:
    async with course(tmp_path, "ada", "grace", "emmy", "sofia", protocols=PROTOCOLS) as (clock, people):
        host, *guests = people
        manifest = await host.aggregator.create_study(PROTOCOLS.proposal(STUDY))
        invites = await host.aggregator.create_invites(manifest.study_id, len(guests), host.address)
        for guest, invite in zip(guests, invites, strict=True):
            sheet = await guest.peer.look(invite)
            assert sheet.epsilon == manifest.epsilon and sheet.packets == 6 and not sheet.objections
            await guest.peer.join(invite, sheet.epsilon)
        await live_on(clock, people, manifest.timetable.ends + 8 * 86400.0)
        for guest in guests:
            (status,) = [one for one in guest.peer.status() if one.study == manifest.study_id]
            assert (status.state, [slot.status for slot in status.slots]) == (State.FINISHED, [Status.INCLUDED] * 6)
            assert status.spent == manifest.epsilon
        live = host.aggregator.study(manifest.study_id)
        assert learned(await published(live))[:2] == ("3", "3")
        await export_study(live, tmp_path / "out")
        result = audit(tmp_path / "out", protocols=PROTOCOLS)
        assert result.ok and result.packets == 18, result.lines()
