"""Makes `studies.zip`: finished studies as the public sees them, written by the program of one commit.

    PYTHONPATH=. python tests/golden/make_golden.py TARGET

Beside each study lie the key that opens its packets, one sealed packet, one sealed enrolment and one invite link.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import zipfile
from pathlib import Path

from aggregator.audit.exporting import export_study
from anon.transparency.fingerprint import words
from anon.wire.invite import Invite
from tests.support.clock import Clock
from tests.support.world import DESIGNS, begin, make_app, sealed, study_text

PEERS = 12


async def _finish(home: Path, design: str, target: Path) -> None:
    clock = Clock()
    async with make_app(home, clock) as app:
        running = await begin(app, clock, study_text(design))
        live = running.live
        manifest = live.manifest
        peers = await running.enrol(PEERS)
        await running.close_enrolment(peers)
        slots = range(len(manifest.slots))
        sent = [peer.packet(slot, category=number % 2) for number, peer in enumerate(peers) for slot in slots]
        posted = {id(packet): sealed(live, packet) for packet in sent}
        for window in manifest.windows:
            await running.go_to(window.opens)
            for packet in sent:
                if manifest.surveys[packet.survey].window == window:
                    assert await live.submit(posted[id(packet)]) == "accepted"
            await running.go_to(window.closes)
        await export_study(live, target)
        keys = next(home.glob("studies/*.keys")).read_bytes()
        (target / "keys").write_bytes(keys)
        (target / "sealed-packet").write_bytes(posted[id(sent[0])])
        (target / "packet").write_bytes(sent[0].to_bytes())
        (target / "sealed-enrolment").write_bytes(peers[0].sealed_enrolment())
        (target / "enrolment").write_bytes(peers[0].enrolment())
        address = "127.0.0.1:8750"
        link = Invite(address, manifest.aggregator_key, manifest.study_id, "a-code_of 7").link()
        facts = {"words": words(manifest.study_id), "link": link, "study": manifest.study_id.hex()}
        (target / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


def _main(archive: Path, *designs: str) -> None:
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as kept:
        for design in designs or DESIGNS:
            target = Path(folder) / "out" / design
            target.parent.mkdir(exist_ok=True)
            asyncio.run(_finish(Path(folder) / design, design, target))
            for file in sorted(target.rglob("*")):
                if file.is_file():
                    kept.write(file, file.relative_to(target.parent))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), *sys.argv[2:])
