"""The load test tells what is lost and doubled, and runs whole with a few packets."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import load
from benchmarks.load import Answered, Made, missing_and_doubled, offer, quantile, row_of


def test_lost_and_doubled_packets_are_counted() -> None:
    assert missing_and_doubled([b"a", b"b"], [b"b", b"a", b"c"]) == (0, 0)  # "c" was stored and its answer was lost
    assert missing_and_doubled([b"a", b"b"], [b"b"]) == (1, 0)
    assert missing_and_doubled([b"a"], [b"a", b"a"]) == (0, 1)


async def test_a_slow_server_does_not_slow_the_load() -> None:
    """Each packet leaves at its time, and its latency counts from then; every tenth is sent twice."""
    sent: list[bytes] = []

    async def answered(packet: bytes) -> str:
        sent.append(packet)
        await asyncio.sleep(0.2)
        return "accepted"

    made = [Made(bytes([number]), bytes([number])) for number in range(30)]
    got = await offer(lambda packet: asyncio.ensure_future(answered(packet)), made, 3000.0, 1)
    assert got.seconds < 5 and len(sent) == 33
    assert got.words == Counter(accepted=30) and got.again == Counter(accepted=3)
    assert sorted(got.accepted) == [one.digest for one in made] and min(got.latencies) >= 0.19


async def test_other_answers_and_broken_connections_are_rows_of_their_own() -> None:
    async def answered(packet: bytes) -> str:
        if packet == b"0":
            raise ConnectionResetError
        return "busy"

    got = await offer(
        lambda packet: asyncio.ensure_future(answered(packet)), [Made(b"0", b"0"), Made(b"1", b"1")], 1e4, 1
    )
    assert got.words == Counter({"ConnectionResetError": 1, "busy": 1}) and not got.accepted
    row = row_of(10.0, got, 1.0, 5.0)
    assert (row["accepted"], row["other_answers"]) == (0, 2)


def test_quantiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(100)]
    assert [quantile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50.0, 95.0, 99.0, 99.0]
    assert quantile([], 0.5) == 0.0
    row = row_of(50.0, Answered(values, [b"a"] * 50, Counter(accepted=50), Counter(), 2.0), 0.1, 1.0)
    assert (row["accepted_per_second"], row["server_cpu_ms_each"], row["p95_ms"]) == (25.0, 2.0, 95000.0)


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processor time of other programs is read from /proc")
async def test_a_load_of_a_few_packets_is_accepted_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Server, workers and packets are real. A second run takes the packets that the first one kept."""
    monkeypatch.setattr(load, "WARM_UP", 4)
    options = argparse.Namespace(rate=[50.0, 100.0], packets=12, processes=1, kept=tmp_path)
    for _ in range(2):
        first, last = await load.measure(options)
        assert [row["accepted"] for row in (first, last)] == [12, 12]
        assert [row["again_accepted"] for row in (first, last)] == [2, 2]
        assert (last["lost"], last["doubled"]) == (0, 0)
        monkeypatch.setattr(load, "prepare", None)
    assert [path.name for path in tmp_path.iterdir()] == ["study"]
