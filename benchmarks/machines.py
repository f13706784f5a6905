"""Packets that one machine and two accept, each a network namespace with one core, on one PostgreSQL server in a third.

    python -m benchmarks.machines [--machines 1 2] [--rate 1000] [--packets 1000]

It takes root, `ip netns` and PostgreSQL's programs. No namespace has a way out: all wires end at a bridge in that of
the clients. Every machine runs `anonml aggregator serve` on a copy of the home, and is kept on a core of its own. The
packets are those of `benchmarks.load`, as many for each machine, and go to the machines in turn. Every tenth is sent
again, to the other machine.

The cores of this one machine stand for machines. Database and clients share them, so that only processor times tell of
machines of their own: `core_per_second` is what a core takes that serves and does nothing else. A wire between
namespaces has no delay, and no packet of the network is lost. Prints a table and writes benchmarks/out/machines.json.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

from attrs import frozen

from aggregator.store.home import open_home
from aggregator.store.moving import move
from aggregator.store.postgres import PostgresDatabase
from benchmarks.figures import Figure, publish
from benchmarks.load import KEPT, WARM_UP, Made, load_kept, prepare
from benchmarks.server import post
from benchmarks.workers import all_there, compared, offered

CLIENTS, DATABASE, MACHINES = "10.214.0.1", "10.214.0.2", ("10.214.0.3", "10.214.0.4")
PORT = 8750
PROGRAMS = Path("/usr/lib/postgresql")
USER = "nobody"
SETTINGS = {"listen_addresses": DATABASE, "wal_recycle": "off", "unix_socket_directories": ""}


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@frozen
class Network:
    """A namespace for each address, all wired to a bridge in that of the clients. `run` tells one run's from others."""

    run: str

    def name(self, address: str) -> str:
        """The namespace of an address."""
        return f"anonml-{self.run}-{address.rpartition('.')[2]}"

    def inside(self, address: str, *command: str) -> list[str]:
        """The command line that runs a command there."""
        return ["ip", "netns", "exec", self.name(address), *command]

    @contextmanager
    def made(self) -> Iterator[None]:
        """Make them, and remove them with every process inside, whatever happens."""
        clients, others = self.name(CLIENTS), (DATABASE, *MACHINES)
        try:
            for address in (CLIENTS, *others):
                _ip("netns", "add", self.name(address))
                _ip("-n", self.name(address), "link", "set", "lo", "up")
            _ip("-n", clients, "link", "add", "bridge", "type", "bridge")
            _ip("-n", clients, "address", "add", f"{CLIENTS}/24", "dev", "bridge")
            _ip("-n", clients, "link", "set", "bridge", "up")
            for number, address in enumerate(others):
                name, port = self.name(address), f"port{number}"
                _ip("link", "add", port, "netns", clients, "type", "veth", "peer", "name", "wire", "netns", name)
                _ip("-n", clients, "link", "set", port, "master", "bridge", "up")
                _ip("-n", name, "address", "add", f"{address}/24", "dev", "wire")
                _ip("-n", name, "link", "set", "wire", "up")
            yield
        finally:
            for name in map(self.name, (CLIENTS, *others)):
                found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, check=False).stdout
                for pid in map(int, found.split()):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


@contextmanager
def _database(network: Network) -> Iterator[str]:
    """A PostgreSQL server in its namespace, by a user without rights and with every sync; its database's address."""
    programs, user = max(PROGRAMS.glob("*/bin"), key=lambda path: int(path.parts[4])), pwd.getpwnam(USER)
    low = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, user.pw_uid, user.pw_gid)
        data = Path(folder) / "data"
        made = [str(programs / "initdb"), "-D", str(data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C"]
        subprocess.run([*low, *made], check=True, stdout=subprocess.DEVNULL)
        with (data / "pg_hba.conf").open("a") as who, (data / "postgresql.conf").open("a") as conf:
            who.write(f"host all all {CLIENTS}/24 trust\n")
            conf.writelines(f"{name} = '{value}'\n" for name, value in SETTINGS.items())
        with (data / "log").open("w") as log:
            command = network.inside(DATABASE, *low, str(programs / "postgres"), "-D", str(data))
            server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            while subprocess.run([programs / "pg_isready", "-q", "-h", DATABASE], check=False).returncode:
                if server.poll() is not None:
                    raise RuntimeError((data / "log").read_text())
                time.sleep(0.2)
            yield f"postgresql+asyncpg://tester@{DATABASE}/postgres"
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()


@asynccontextmanager
async def _machine(network: Network, number: int, home: Path) -> AsyncIterator[int]:
    """The process that serves a home in its namespace, on its own core."""
    serve = [sys.executable, "-m", "anonml", "aggregator", "serve", "--home", str(home), "--host", MACHINES[number]]
    pinned = ["taskset", "-c", str(number % (os.cpu_count() or 1)), *serve]
    more = ["--port", str(PORT), "--processes", "0", "--json"]
    command = network.inside(MACHINES[number], *pinned, *more)
    server = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        if server.stdout is None or not await server.stdout.readline():
            raise RuntimeError("the server has ended")
        yield server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        await server.wait()


async def _row(options: argparse.Namespace, study: str, made: list[Made], machines: int) -> Figure:
    async with AsyncExitStack() as stack:
        network = Network(options.inside)
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        homes = [scratch / f"home-{number}" for number in range(machines)]
        shutil.copytree(options.kept / "study" / "home", homes[0])
        url = stack.enter_context(_database(network))
        await move(open_home(homes[0], os.urandom), url)
        for other in homes[1:]:
            shutil.copytree(homes[0], other)
        served = [_machine(network, number, home) for number, home in enumerate(homes)]
        pids = [await stack.enter_async_context(machine) for machine in served]
        database = PostgresDatabase(url)
        stack.push_async_callback(database.close)
        await all_there(database, machines)
        following = {packet.sealed: number for number, packet in enumerate(made)}
        reached: Counter[int] = Counter()

        def send(packet: bytes) -> asyncio.Future[str]:
            at = following[packet] % machines
            following[packet] += 1  # the next time it goes to the other
            reached[at] += 1
            return asyncio.ensure_future(post(PORT, f"/v1/{study}/packets", packet, MACHINES[at]))

        loaded = argparse.Namespace(packets=options.packets * machines, rate=options.rate * machines)
        row, accepted = await offered(loaded, database, pids, send, made, machines)
        cpu, each = row["processes_cpu_ms_each"], "/".join(str(reached[at]) for at in range(machines))
        whole: Figure = {"machines": machines, "sent_to_each": each, **row}
        whole["core_per_second"] = round(1e3 / cpu) if isinstance(cpu, float) and cpu else None
        return whole | await compared(database, accepted)


async def measure(options: argparse.Namespace) -> list[Figure]:
    """One row for each number of machines. Runs in the namespace of the clients."""
    count, folder = (options.packets + WARM_UP) * max(options.machines), options.kept / "study"
    if (kept := load_kept(folder, count)) is None:
        await prepare(folder, count)
        kept = load_kept(folder, count)
    if kept is None:
        raise RuntimeError("what was prepared cannot be read")
    return [await _row(options, *kept, machines) for machines in options.machines]


def main() -> None:
    """Measure: make the namespaces, then run once more within that of the clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, nargs="+", choices=(1, 2), default=[1, 2], help="machines that serve")
    parser.add_argument("--rate", type=float, default=1000.0, help="packets offered a second, to each")
    parser.add_argument("--packets", type=int, default=1000, help="packets for each machine")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where members and packets are kept for later runs")
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        network = Network(str(os.getpid()))
        with network.made():
            again = [sys.executable, "-m", "benchmarks.machines", *sys.argv[1:], "--inside", network.run]
            raise SystemExit(subprocess.run(network.inside(CLIENTS, *again), check=False).returncode)
    rows = asyncio.run(measure(options))
    publish("machines", rows, {"cores": os.cpu_count(), "offered_per_second_to_each": options.rate})


if __name__ == "__main__":
    main()
