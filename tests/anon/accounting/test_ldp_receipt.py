"""The receipt of a study equals an independent recomputation: counts, local sums and central epsilons, as printed."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from html import unescape
from pathlib import Path

import pytest

from anon.accounting.statement import (
    ACCEPTED,
    ENROLLED,
    Batch,
    account,
    as_json,
    batch_of_chain,
    batch_of_reports,
    in_words,
    rounded_up,
)
from anon.ldp import SCALE
from anon.study.manifest import Manifest
from anon.wire.cbor import decode
from tests.anon.accounting.shuffle_by_fourier import Row, epsilon_at
from tests.support.clock import Clock
from tests.support.world import begin, in_memory, make_app, published, sealed, study_text

pytestmark = pytest.mark.slow


def local_by_hand(manifest: Manifest) -> list[Fraction]:
    """For each slot e**epsilon of its dearest row, from the integers alone."""
    found = []
    for slot in manifest.slots:
        ratios = []
        for row in slot.rows:
            one = manifest.surveys[row.survey]
            p, q = Fraction(one.p, SCALE), Fraction(one.q, SCALE)
            if one.mechanism == "krr":
                ratios.append(p / q)
            elif one.mechanism == "subset":
                w = p + (one.m - 1) * q
                ratios.append(p * (one.m - w) / ((1 - p) * w))
            else:
                ratios.append(p * (1 - q) / ((1 - p) * q))
        found.append(max(ratios))
    return found


def rows_by_hand(manifest: Manifest, slot: int) -> list[Row]:
    rows = manifest.slots[slot].rows
    total = sum(row.weight for row in rows)
    surveys = [(manifest.surveys[row.survey], row.weight / total) for row in rows]
    return [(one.mechanism, one.m, one.p / SCALE, one.q / SCALE, share) for one, share in surveys]


async def manifest_of(home: Path, design: str = "cuts", admission: str = "invite") -> Manifest:
    clock = Clock()
    async with make_app(home, clock) as app:
        return (await begin(app, clock, study_text(design, admission=admission))).live.manifest


@pytest.mark.parametrize("design", ["cuts", "quantile"])
@pytest.mark.parametrize("accepted", [3000, 40_000])
async def test_the_receipt_of_a_study_is_what_an_independent_recomputation_finds(
    tmp_path: Path, design: str, accepted: int
) -> None:
    """Central figures from above and within 3 percent of the exact ones, at all, half and a tenth honest."""
    manifest = await manifest_of(tmp_path / "home", design)
    said = in_words(account(manifest, Batch((accepted,), ACCEPTED)))
    exact = local_by_hand(manifest)
    local = sum(math.log(one) for one in exact)
    assert len(exact) == 1
    assert float(re.search(r"Record-level sum: ([\d.]+)\.", said[1])[1]) == pytest.approx(local, abs=2e-9)  # type: ignore[index]
    assert f"{accepted} accepted packets" in "\n".join(said)
    for words, honest in (("all", accepted), ("half", accepted // 2), ("a tenth", accepted // 10)):
        line = next(one for one in said if one.strip().startswith(f"{words} of them honest"))
        printed = float(re.search(r"honest: ([\d.]+)\.", line)[1])  # type: ignore[index]
        true = epsilon_at(1e-6, local, rows_by_hand(manifest, 0), honest)
        assert true <= printed * (1 + 1e-6), (words, true)
        assert printed <= true * 1.03 + 1e-4, (words, true)
    assert any(line.startswith("  none of them honest") and line.endswith("(the local epsilon).") for line in said)


async def test_counts_read_from_signed_heads_are_those_of_the_documents(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text("quantile"), invites=40) as running:
        live = running.live
        assert batch_of_chain(live.manifest, live.chain) is None
        peers = await running.enrol(30)
        await running.close_enrolment(peers)
        assert batch_of_chain(live.manifest, live.chain) == Batch((30,) * live.manifest.packets, ENROLLED)
        for window in live.manifest.windows:
            await running.go_to(window.opens)
            for peer in peers[:-3]:
                packet = peer.packet(0)
                if live.manifest.surveys[packet.survey].window == window:
                    assert await live.submit(sealed(live, packet)) == "accepted"
            await running.go_to(window.closes)
        documents = await published(live)
        counts = await live.accepted()
        found = batch_of_chain(live.manifest, live.chain)
        assert found == batch_of_reports(live.manifest, [counts[one.survey] for one in live.manifest.surveys])
        assert found.counts == tuple(decode(documents["transcript", slot.slot])[4] for slot in live.manifest.slots)
        assert found == Batch((27,), ACCEPTED)
        page = documents["report", 0].decode()
        for line in in_words(account(live.manifest, found)):
            assert line.strip() in unescape(page)


async def test_open_admission_gets_no_central_figure(tmp_path: Path) -> None:
    manifest = await manifest_of(tmp_path / "home", admission="open")
    found = account(manifest, Batch((5000,), ACCEPTED))
    said = "\n".join(in_words(found))
    assert "no central epsilon is claimed" in said and "honest" not in said
    assert (as_json(found)["central"], as_json(found)["conditions"]) == ([], [])


async def test_the_paper_s_design_composes_its_slots(tmp_path: Path) -> None:
    """Several packets: the sum is the sum, and the central figure lies between one slot's and all slots' added up."""
    manifest = await manifest_of(tmp_path / "home", "median")
    found = account(manifest, Batch((4000,) * manifest.packets, ACCEPTED))
    locals_ = [math.log(one) for one in local_by_hand(manifest)]
    assert found.record / 1e9 == pytest.approx(sum(locals_), abs=1e-8)
    apart = [epsilon_at(1e-6, one, rows_by_hand(manifest, slot), 4000) for slot, one in enumerate(locals_)]
    assert max(apart) < found.central[0].epsilon < sum(apart)
    assert found.record_at_delta <= found.record / 1e9


@pytest.mark.parametrize("value", [0.0123401, 0.5, 1.99999, 12.3456, 1e-4])
def test_figures_are_rounded_up(value: float) -> None:
    assert Decimal(value) <= Decimal(rounded_up(value)) <= Decimal(value) * Decimal("1.001")
