"""Figures of `averaging` and `transfer` on public data, and docs/parties.md from them.

    python -m benchmarks.parties --data FOLDER [--output docs/parties.md] [--parts averaging others transfer activity]

FOLDER holds the a9a, Adult, KDD Cup 99, activity and address files (.gz). Each part's rows are kept in
benchmarks/out/parties-PART.json, and the page is written from all that are kept there, so that a part, or some numbers
of parties, can be measured alone. The picture lies in the folder `results` beside the page. Deterministic in the seed.
Fails where a goal is missed. `others`: histograms and exact sums on the same records.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.data import data_folder
from benchmarks.figures import OUT, Figure, publish
from benchmarks.paper.findings import Findings
from benchmarks.parties import activity, averaging, beside, network
from benchmarks.parties.page import PICTURE, goals_of, page, picture

PAGE = Path(__file__).resolve().parents[2] / "docs" / "parties.md"
PARTS = ("averaging", "others", "transfer", "activity")


def measured(part: str, data: Path, draws: int, sizes: Sequence[int]) -> Iterator[Figure]:
    """The rows of a part; averaging draws twice as often."""
    if part == "averaging":
        train, test = (averaging.Table.of(data / f"a9a_{name}.csv.gz") for name in ("train", "test"))
        yield from averaging.figures(train, test, 2 * draws)
    if part == "others":
        yield from beside.adult(data)
    if part in ("others", "transfer"):
        connections = network.Connections.of(data / network.FILE)
        if part == "transfer":
            yield from network.figures(connections, draws, sizes)
        else:
            for parties in sizes:
                yield from beside.network(connections, parties, draws)
    if part == "activity":
        for task in (activity.activities(data / activity.WINDOWS), activity.addresses(data / activity.ADDRESSES)):
            yield from task.figures(draws)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, keep, and write the page; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="How well parties with many records learn.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--draws", type=int, default=100, help="of noise; averaging has twice as many")
    parser.add_argument("--parties", type=int, nargs="*", default=network.PARTIES, help="M on KDD Cup 99")
    options = parser.parse_args(arguments)
    for part in options.parts:
        start = time.process_time()
        rows = []
        for row in measured(part, options.data, options.draws, options.parties):
            rows.append(row)
            print(*row.values(), file=sys.stderr, flush=True)
        fresh = {row.get("parties") for row in rows}
        rows += [row for row in kept().rows(part) if row.get("parties") not in fresh]
        publish(f"parties-{part}", rows, {"cpu_seconds": round(time.process_time() - start)})
    write(options.output, kept())
    missed = [goal for goal in goals_of(kept()) if not goal.met]
    print(*(f"missed: {goal.words}: {goal.found}" for goal in missed), sep="\n")
    return int(bool(missed))


def kept() -> Findings:
    """The rows of all parts that were measured."""
    files = ((part, OUT / f"parties-{part}.json") for part in PARTS)
    return Findings({part: json.loads(file.read_text("utf-8"))["rows"] for part, file in files if file.exists()})


def write(output: Path, found: Findings) -> None:
    """The page, and its picture in the folder beside it. A part without rows stays as it was."""
    output.write_text(page(found, output.read_text("utf-8") if output.exists() else ""), "utf-8")
    if found.rows("averaging"):
        (output.parent / "results").mkdir(exist_ok=True)
        (output.parent / "results" / PICTURE).write_text(picture(found), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
