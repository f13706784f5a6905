"""The cost of evaluating a study: in the process, as before, and in a child. `python -m benchmarks.evaluation`.

Processor time of both sides together, from the system's own count of the server and the children that it reaped.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from anon.queries import process
from anon.queries.answers import LABEL, Question, Request, answered
from anon.queries.sandbox import opened
from examples.mooc.features import AS_OF, STUDY
from examples.mooc.generate import generate
from examples.protocols import PROTOCOLS
from peer.data.importing import import_file

STUDENTS, TURNS = 20, 15
TICKS = os.sysconf("SC_CLK_TCK")


def requests(folder: Path) -> list[Request]:
    """The course study over the logs of so many students."""
    study = PROTOCOLS.load_proposal(STUDY)
    tables = {table.name: table.columns for table in study.tables}
    features = (Question(one.kind, one.query, one.categories) for one in study.features)
    questions = (*features, Question(LABEL, study.label.query))
    made = []
    for number, student in enumerate(generate(STUDENTS, seed=3)):
        log, database = folder / f"{number}.jsonl", folder / f"{number}.sqlite"
        log.write_text("".join(line + "\n" for line in student.lines), encoding="utf-8")
        import_file(database, log, study.tables[0].name)
        made.append(Request(database, tables, questions, AS_OF))
    return made


def here(request: Request) -> None:
    """Without a child."""
    with opened(request.database, request.tables, request.bounds, 60.0) as sandbox:
        answered(sandbox, request)


def childs() -> float:
    """Seconds of processor time that the server and its children have taken."""
    server = process._SERVER._process
    fields = Path(f"/proc/{server.pid}/stat").read_text("ascii").rpartition(")")[2].split() if server else ["0"] * 20
    return sum(map(int, fields[11:15])) / TICKS


def measured(work: Callable[[Request], object], made: list[Request]) -> tuple[list[float], list[float]]:
    """Milliseconds of processor and of wall time for one evaluation: means over all students, one for each turn."""
    processor, wall = [], []
    for _ in range(TURNS):
        began, took = time.perf_counter(), time.process_time() + childs()
        for one in made:
            work(one)
        wall.append(1000 * (time.perf_counter() - began) / len(made))
        time.sleep(0.2)
        processor.append(1000 * (time.process_time() + childs() - took) / len(made))
    return processor, wall


def main() -> None:
    """Print a line for each way."""
    with tempfile.TemporaryDirectory() as folder:
        made = requests(Path(folder))
        began = time.perf_counter()
        process.at_once(made[0], 60.0)
        print(f"server started and first answer: {1000 * (time.perf_counter() - began):.2f} ms")
        for name, work in (("in the process", here), ("in a child", lambda one: process.at_once(one, 60.0))):
            for what, found in zip(("processor", "wall"), measured(work, made), strict=True):
                spread = f"[{min(found):.2f} .. {max(found):.2f}]"
                print(f"{name}: {what} {statistics.median(found):.2f} ms {spread}")
        server = process._SERVER._process
        assert server is not None
        held = Path(f"/proc/{server.pid}/smaps_rollup").read_text("ascii").split()
        print(f"server at rest: {int(held[held.index('Rss:') + 1]) / 1024:.1f} MB, "
              f"{int(held[held.index('Pss:') + 1]) / 1024:.1f} MB of its own share")



if __name__ == "__main__":
    main()
