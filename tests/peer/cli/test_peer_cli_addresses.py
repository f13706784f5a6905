"""The consent screen says where a study is served to everybody: on one machine, at one onion address, or at several."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from anon.wire.onion_address import onion_host
from peer.cli.show import sheet_json, show_sheet
from peer.data.readiness import own_data
from peer.rules.consent import Policy, explain
from peer.rules.ledger import Ledger
from tests.support.clock import START, Clock
from tests.support.fake_aggregator import DECLARED, FakeAggregator

ONIONS = [f"{onion_host(bytes([number] * 32))}:80" for number in range(2)]
SAID = [
    "one machine alone, through no network;",
    f"“{ONIONS[0]}”;",
    f"“{ONIONS[0]}”, “{ONIONS[1]}”, 2 addresses of which each exchange draws one;",
]


@pytest.mark.parametrize("count", range(3))
def test_all_addresses_are_shown_before_a_yes(tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int) -> None:
    plain = FakeAggregator.with_study(DECLARED, Clock(START)).manifest
    manifest = evolve(plain, address=" ".join(ONIONS[:count]))
    sheet, own = explain(manifest, Policy(), Ledger(10 * 10**9, ()), START), own_data(tmp_path / "d", manifest.tables)
    show_sheet(sheet, own, tmp_path, queries=False)
    assert f"Served to everybody at {SAID[count]} the fingerprint covers that." in capsys.readouterr().out
    shown = sheet_json(sheet, own)
    assert (shown["addresses"], shown["address"]) == (ONIONS[:count], "".join(ONIONS[: min(count, 1)]))
