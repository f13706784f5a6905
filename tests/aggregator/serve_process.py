"""An aggregator in a process of its own, on a clock that is a file: `python serve_process.py HOME CLOCK STUDY_FILE`.

Prints its port. Publishes the study when there is none yet.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from aggregator import app as application
from anon.study import load_proposal

application._LONGEST_SLEEP = 0.05


async def main(home: Path, clock: Path, study: Path) -> None:
    async with application.AggregatorApp(home, lambda: float(clock.read_text()), os.urandom, processes=0) as app:
        if not app.studies():
            await app.create_study(load_proposal(study))
        await app.serve("127.0.0.1", 0, lambda port: print(port, flush=True))


if __name__ == "__main__":
    asyncio.run(main(*(Path(argument) for argument in sys.argv[1:])))
