"""The auditor's bars: no alarm on sound settings, and every planted flaw found.

    python -m benchmarks.auditor sound [--settings 200] [--runs 100000] [--opendp opendp]
    python -m benchmarks.auditor planted [--folder DIR]
    python -m benchmarks.auditor own

`sound`: our own mechanisms at many sizes and epsilons, Mironov's Snapping (2012), and with `--opendp` a requirement of
that package in an environment of its own. `planted`: a folder of flaws, as tests/shells/auditor/README.md says. `own`
prints the table of docs/auditor.md. Writes benchmarks/out/auditor-*.json, and fails where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import secrets
import sys
from collections.abc import Callable, Iterator
from itertools import cycle, islice, zip_longest
from pathlib import Path
from time import process_time
from typing import Any

from attrs import frozen
from numpy.random import SeedSequence, default_rng

from aggregator.auditor.boxes import FunctionBox, ProcessBox
from aggregator.auditor.claim import PrivacyClaim
from aggregator.auditor.domain import pairs, parse_domain
from aggregator.auditor.environments import interpreter
from aggregator.auditor.search import RUNS, AuditVerdict, BlackBox, audit_black_box
from aggregator.auditor.target import read_target
from benchmarks.own_mechanisms import TABLE, local

OUT = Path(__file__).parent / "out"
PLANTED = Path(__file__).resolve().parents[1] / "tests" / "shells" / "auditor" / "planted"
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0)
OPENDP = Path(__file__).parent / "opendp_targets.py"


@frozen
class Setting:
    """A mechanism and the claim that it makes."""

    name: str
    mechanism: Callable[[Any], object] | str
    epsilon: float
    delta: float
    domain: str
    neighbours: str


def snapping(epsilon: float, bound: float = 100.0) -> Callable[[float], float]:
    """Mironov 2012, theorem 1: the value is clamped, gets noise, and is rounded to a power of two above its scale.

    The promise is (1 + 2^-49 bound) / scale, for a scale below the bound.
    """
    scale = (1 + 2**-49 * bound) / epsilon
    grid = 2.0 ** math.ceil(math.log2(scale))

    def uniform() -> float:
        """Every double of (0, 1), each with the chance of its own width."""
        exponent = 0
        while secrets.randbits(1):
            exponent += 1
        return math.ldexp(1 + secrets.randbits(52) * 2**-52, -exponent - 1)

    def mechanism(x: float) -> float:
        noisy = max(-bound, min(bound, x)) + (2 * secrets.randbits(1) - 1) * scale * math.log(uniform())
        return max(-bound, min(bound, math.floor(noisy / grid + 0.5) * grid))

    return mechanism


def sound(count: int, opendp: str) -> list[Setting]:
    """So many sound settings: every kind in turn, at growing sizes and every epsilon."""
    sizes = (2, 3, 5, 8, 16, 32, 64)
    kinds = [
        [Setting(f"{name} m={m}", local(name, m, e), e, 0.0, f"0..{m - 1}", "any") for m in sizes for e in EPSILONS]
        for name in ("krr", "subset", "rappor", "pq")
    ]
    repeated = list(islice(cycle(EPSILONS), 25))
    for name in ("integer_laplace", "exponential", "tellers_sum"):
        built, delta, domain, neighbours = TABLE[name]
        kinds.append([Setting(name, built(e), e, delta, domain, neighbours) for e in repeated])
    kinds.append([Setting("snapping", snapping(e), e, 0.0, "0.0..1.0", "any") for e in repeated])
    if opendp:
        named = ("laplace_float", "laplace_int", "gaussian", "response", "noisy_max")
        deltas = {"gaussian": 1e-5}
        kinds.append([
            Setting(f"opendp {name}", f"{OPENDP}:{name}", 1.0, deltas.get(name, 0.0), "", "")
            for name in islice(cycle(named), 25)
        ])
    mixed = [setting for row in zip_longest(*kinds) for setting in row if setting is not None]
    return mixed[:count]


def audited(setting: Setting, runs: int, python: str) -> tuple[AuditVerdict, float]:
    """The verdict, and the seconds of processor time that it took."""
    claim, began = PrivacyClaim(setting.epsilon, setting.delta), process_time()

    def with_box(box: BlackBox, tried: list[tuple[Any, Any]]) -> AuditVerdict:
        return audit_black_box(box, claim, tried, default_rng(SeedSequence()), process_time, runs)

    if isinstance(setting.mechanism, str):
        target = read_target(setting.mechanism, {"epsilon": setting.epsilon, "delta": setting.delta})
        with ProcessBox(target.place, target.function, python) as box:
            return with_box(box, target.tried(random.SystemRandom())), process_time() - began + box.seconds()
    tried = pairs(parse_domain(setting.domain), setting.neighbours, random.SystemRandom())
    return with_box(FunctionBox(setting.mechanism), tried), process_time() - began


def planted(folder: Path) -> Iterator[Setting]:
    """The flaws of a folder, each in a child, as the command has it."""
    for file in sorted(folder.glob("*.py")):
        target = read_target(str(file), {})
        claim = target.claim()
        yield Setting(file.stem, str(file), claim.epsilon, claim.delta, target.domain, target.neighbours)


def _told(setting: Setting, verdict: AuditVerdict, seconds: float) -> dict[str, Any]:
    event = verdict.best.words if verdict.best else ""
    print(f"{setting.name:24} {setting.epsilon:4g}  {verdict.words()}  [{seconds:.1f} s] {event[:60]}", flush=True)
    return {
        "name": setting.name, "epsilon": setting.epsilon, "broken": verdict.broken, "proven": verdict.highest,
        "runs": verdict.runs, "seconds": round(seconds, 1), "event": event,
    }  # fmt: skip


def main() -> int:
    """Run a bar; 1 where it is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bar", choices=("sound", "planted", "own"))
    parser.add_argument("--settings", type=int, default=200)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--opendp", default="", metavar="REQUIREMENT")
    parser.add_argument("--folder", type=Path, default=PLANTED)
    asked = parser.parse_args()
    python = interpreter([asked.opendp], "", print) if asked.opendp else sys.executable
    if asked.bar == "planted":
        settings = list(planted(asked.folder))
    elif asked.bar == "own":
        settings = [Setting(name, built(1.0), 1.0, d, inputs, near) for name, (built, d, inputs, near) in TABLE.items()]
    else:
        settings = sound(asked.settings, asked.opendp)
    rows = [_told(setting, *audited(setting, asked.runs, python)) for setting in settings]
    broken = sum(row["broken"] for row in rows)
    slowest, most = max(row["seconds"] for row in rows), max(row["runs"] for row in rows)
    print(f"{broken} of {len(rows)} broken; at most {most:,} runs and {slowest:.1f} s of processor time each")
    OUT.mkdir(exist_ok=True)
    (OUT / f"auditor-{asked.bar}.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return int(broken != (len(rows) if asked.bar == "planted" else 0))


if __name__ == "__main__":
    sys.exit(main())
