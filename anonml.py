"""The command `anonml`: the one place that may reach both the peer's and the aggregator's side, each only when asked,
and that joins the shells: none of them imports another.

Exit codes: 0 done; 1 failed; 2 wrong use of the command line; 3 malformed input; 4 refused by policy; 5 a proof or
signature was rejected; 6 conflict with what is there; 7 the other side cannot be reached; 8 a
file of a home or a backup is damaged.
"""

from __future__ import annotations

import errno
import importlib
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from anon.errors import AnonmlError, RejectedProof

# Everything that takes time to import is imported inside `main`, where an early Ctrl-C is still answered in one line.

# name: (module with a typer application called `app`, what it is for)
COMMANDS = {
    "peer": ("peer.cli.main", "Keep your data, join studies, see what was sent."),
    "aggregator": ("aggregator.cli.main", "Run studies: invite, serve, watch, export, audit."),
    "study": ("aggregator.cli.study", "Write, check and publish a study; try it on synthetic data."),
    "simulate": ("aggregator.lab.cli_simulate", "Predict a study's result on data you have, without any network."),
    "evidence": ("anon.terminal.equivocation", "Check or make a proof against an aggregator; needs no home."),
    "demo": ("examples.demo", "Run a whole study on this machine: census or mooc."),
    "testnet": ("anon.testnet.cli", "A private Tor network on this machine, to try everything on."),
    "doctor": ("anon.terminal.doctor", "Look at this installation and say what to do next."),
    "support-bundle": ("anon.terminal.support", "Pack what a helper needs to know, and nothing about anybody."),
}

# (command, what adds a shell's own commands to it). Without its line a shell's folder can be deleted.
JOINED = (
    ("peer", "peer.desktop.cli:join"),
    ("peer", "peer.pairing.cli:join"),
    ("peer", "peer.web.cli:join"),
    ("aggregator", "aggregator.desk.cli:join"),
    ("aggregator", "aggregator.estimator.cli:join"),
    ("aggregator", "aggregator.lab.cli:join_aggregator"),
    ("study", "aggregator.lab.cli:join_study"),
)

# (socket, the part of a shell that another one's commands are given); see anon/terminal/wiring.py.
PARTS = (
    ("the page", "peer.web.server:PageServer"),
    ("on the page", "peer.pairing.page:routes"),
    ("beside the page", "peer.desktop.notifier:reminding_beside"),
    ("run --stay", "peer.desktop.cli:run_and_stay"),
    ("serve", "aggregator.cli.serve:serve"),
    ("the desk", "aggregator.desk.server:serve_desk"),
    ("outlook", "aggregator.lab.planning.outlook:outlook_of"),
)
COMPLETION = "completion"
USAGE = 2
INTERRUPTED = 130
_BEWARE = "do not rely on it: get the link or the file again, and compare its fingerprint with a public place"
_NO_DEMO = (
    "demos run from a checkout of the project: clone it, then `make demo`. "
    "Here `anonml simulate STUDY.toml --data FILE` tries a study"
)
_UNWRITABLE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")
_MORE_ROOM = "Make room on that disk, or choose a folder on another one"


def main() -> None:
    """Run the command line; expected failures become one clear message and a documented exit code."""
    try:
        from anon.environment import take_secrets
        from anon.terminal.logs import to_stderr

        take_secrets()
        to_stderr()
        sys.exit(_run(sys.argv[1:]))
    except BaseException as error:
        sys.exit(_explain(error))


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        from importlib.metadata import version

        sys.stdout.write(f"anonml {version('anonml')}\n")
        return 0
    if arguments == ["--open-link"]:
        from anon.page.browser import open_given

        return open_given()
    if not arguments or arguments[0] in ("-h", "--help"):
        _help()
        return 0 if arguments else USAGE
    name, *rest = arguments
    if name == COMPLETION:
        return _complete(rest)
    if name not in COMMANDS:
        known = ", ".join([*COMMANDS, COMPLETION])
        return _fail("usage", f"anonml: no command {name!r}; expected one of {known}", USAGE)
    _application(name)(args=rest, prog_name=f"anonml {name}", obj=wiring())
    return 0


def wiring() -> Any:
    """The parts of other shells, by socket, that a command may use: `PARTS` as the commands take it."""
    from anon.terminal.wiring import Wiring

    sockets = {socket: [part for name, part in PARTS if name == socket] for socket, _ in PARTS}
    return Wiring(sockets)


def _explain(error: BaseException) -> int:
    """Print an expected failure and return its exit code; of anything else, our own bug, the kind and the places."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, KeyboardInterrupt):
        return _fail("stopped", "nothing is lost; the same command goes on from here", INTERRUPTED)
    if isinstance(error, AnonmlError):
        beware = f"; {_BEWARE}" if isinstance(error, RejectedProof) else ""
        return _fail(error.code, f"{error}{beware}", error.exit_code)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        what = error.strerror or "the system refused"
        return _fail("system", f"{where}{what}; {_after(error)}", 1)
    if kind := _storage_fault(error):
        return _fail("system", f"a database of --home cannot be written ({kind}); nothing is lost. {_MORE_ROOM}", 1)
    from anon.terminal.logs import places

    sys.stderr.write(f"Traceback (places only):\n{places(error)}\n")
    return _fail("bug", "a fault in this program; nothing is lost. Report the lines above: no data are in them", 1)


def _after(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "stop what listens there, or choose another port: --port N, or --port 0 for a free one"
    return _MORE_ROOM if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check the path, or free what is in use"


def _storage_fault(error: BaseException | None) -> str:
    """SQLite's name for a disk that is full or takes nothing, wherever in the chain of causes it stands; or nothing."""
    while error is not None:
        name = getattr(error, "sqlite_errorname", None)
        if isinstance(name, str) and name.startswith(_UNWRITABLE):
            return name
        error = error.__cause__ or error.__context__
    return ""


def _fail(code: str, message: str, exit_code: int) -> int:
    from rich.console import Console

    from anon.terminal.foreign import inline

    # A message may quote a name out of a document, or of a file, that somebody else wrote: nothing of it begins a line.
    said = "\n  ".join(inline(line) for line in message.split("\n"))
    Console(stderr=True).print(f"[bold red]{code}[/]: {said}", highlight=False)
    return exit_code


@cache
def application(name: str) -> Any:
    """The typer application of a command, with what shells add to it.

    Raises `ModuleNotFoundError` where a part of it is not installed.
    """
    module = COMMANDS[name][0]
    if module.startswith("examples."):
        sys.path.insert(0, str(Path(__file__).resolve().parent))
    app = importlib.import_module(module).app
    for command, part in JOINED:
        if command == name:
            place, _, join = part.partition(":")
            getattr(importlib.import_module(place), join)(app)
    return app


def _application(name: str) -> Any:
    try:
        return application(name)
    except ModuleNotFoundError as error:
        from anon.extras import install

        missing = (error.name or "").partition(".")[0]
        if missing in {"anon", "peer", "aggregator", ""}:
            raise
        if missing == "examples":
            sys.exit(_fail("no-checkout", _NO_DEMO, 1))
        sys.exit(_fail("not-installed", f"{missing} is missing; `{install('aggregator')}`", 1))


def _complete(arguments: list[str]) -> int:
    """Print the completion script of a shell, with every command that is installed."""
    from anon.terminal.completion import SHELLS, Node, node_of, script

    if len(arguments) != 1 or arguments[0] not in SHELLS:
        said = f"anonml {COMPLETION} {'|'.join(SHELLS)}: prints a script; bash: eval \"$(anonml {COMPLETION} bash)\""
        return _fail("usage", said, USAGE)
    from typer.main import get_command

    found = {}
    for name in COMMANDS:
        with suppress(ModuleNotFoundError):  # a part that is not installed here is no fault of a new shell
            found[name] = node_of(get_command(application(name)))
    found[COMPLETION] = Node("Print a shell's completion script.", (), {shell: Node() for shell in SHELLS})
    sys.stdout.write(script(arguments[0], Node("", ("--help", "--version"), found)))
    return 0


def _help() -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print("[bold]anonml[/]: a model for the group, and nobody hands over their data.\n")
    table = Table(box=None, show_header=False, pad_edge=True)
    for name, (_, summary) in COMMANDS.items():
        table.add_row(f"anonml {name}", summary)
    table.add_row(f"anonml {COMPLETION}", "Print a script that completes commands in bash, zsh or fish.")
    console.print(table)
    console.print("\nEach command has --help. " + (__doc__ or "").split("\n\n", 1)[1].strip(), highlight=False)


if __name__ == "__main__":
    main()
