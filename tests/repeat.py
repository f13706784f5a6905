"""Run a command many times, beside other work: a fault that comes by chance shows itself.

`python -m tests.repeat 20 --beside 16 --core 0 -- .venv/bin/anonml demo census` runs a demo twenty times on one core,
with sixteen programs beside it that are never idle. Each run's seconds, processor time and exit code are printed, and
the first failure ends it with what that run printed. In COMMAND, {run} stands for the run's number.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

BUSY = "while True: pass"
BESIDE_AT = 19  # a niceness: sixteen of them take a fifth of the core of a command, and make it wait at every turn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int)
    parser.add_argument("--beside", type=int, default=0, help="how many programs are busy meanwhile")
    parser.add_argument("--core", type=int, help="the only core that all of it may use (Linux)")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    if given.core is not None:
        os.sched_setaffinity(0, {given.core})
    beside = [subprocess.Popen(["nice", "-n", str(BESIDE_AT), sys.executable, "-c", BUSY]) for _ in range(given.beside)]
    try:
        return repeated(given.runs, given.command)
    finally:
        for busy in beside:
            busy.kill()
            busy.wait()


def repeated(runs: int, command: list[str]) -> int:
    for run in range(1, runs + 1):
        before, used = time.monotonic(), os.times()
        with tempfile.TemporaryFile("w+") as printed:
            ended = subprocess.run([part.format(run=run) for part in command], stdout=printed, stderr=subprocess.STDOUT)
            printed.seek(0)
            lines = printed.read()
        now = os.times()
        spent = now.children_user + now.children_system - used.children_user - used.children_system
        print(f"run {run} of {runs}: exit {ended.returncode}, {time.monotonic() - before:.0f} s,", end=" ")
        print(f"{spent:.0f} s of processor time, load {os.getloadavg()[0]:.1f}", flush=True)
        if ended.returncode:
            print(lines)
            return 1
    print(f"{runs} of {runs} ended well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
