"""The command `anonml`: the one place that may reach both the peer's and the aggregator's side, each only when asked,
and that joins the shells: none of them imports another.

For researchers the module offers the estimator, the study of a notebook, published models and the audit. For authors of
protocols it has whole studies in memory (`testing`). Each is imported when it is asked for: `from anonml import Study`.

Exit codes: 0 done; 1 failed; 2 wrong use of the command line; 3 malformed input; 4 refused by policy; 5 a proof or
signature was rejected; 6 conflict with what is there; 7 the other side cannot be reached; 8 a
file of a home or a backup is damaged; 9 an audit found no fault, and could not check all.
"""

from __future__ import annotations

import gc
import importlib
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from anon.errors import AnonmlError, RejectedProof

if TYPE_CHECKING:
    from aggregator.audit import audit
    from aggregator.estimator import LocallyPrivateClassifier, PublishedClassifier
    from aggregator.notebook import Study
    from anon.protocols.installed import load_model
    from examples import testing
    from peer import ledger

__all__ = ["LocallyPrivateClassifier", "PublishedClassifier", "Study", "audit", "ledger", "load_model", "testing"]

# Everything that takes time to import is imported inside `main`, where an early Ctrl-C is still answered in one line.

# name: (module with a typer application called `app`, what it is for)
COMMANDS = MappingProxyType(
    {
        "peer": ("peer.cli.main", "Keep your data, join studies, see what was sent."),
        "aggregator": ("aggregator.cli.main", "Run studies: invite, serve, watch, export, audit."),
        "study": ("aggregator.cli.study", "Write, check and publish a study; try it on synthetic data."),
        "teller": ("anon.teller.cli", "Be one of the tellers that add up a study's vectors, with noise."),
        "simulate": ("aggregator.lab.cli_simulate", "Predict a study's result on data you have, without any network."),
        "evidence": ("anon.kit.terminal.equivocation", "Check or make a proof against an aggregator; needs no home."),
        "audit": ("aggregator.auditor.cli", "Test a mechanism, as a black box, against the epsilon it claims."),
        "demo": ("examples.demo", "Run a whole study on this machine, of census data or of your own."),
        "testnet": ("anon.kit.testnet.cli", "A private Tor network on this machine, to try everything on."),
        "doctor": ("anon.kit.terminal.doctor", "Look at this installation and say what to do next."),
        "support-bundle": ("anon.kit.terminal.support", "Pack what a helper needs to know, and nothing about anybody."),
    }
)

# (command, what adds further commands to it, their names). Without its line a shell's folder can be deleted.
# Each is imported for its own commands and for help alone.
JOINED = (
    ("peer", "peer.cli.taking_back:join", ("delete", "erase")),
    ("peer", "peer.desktop.cli:join", ("autostart", "notify", "tray", "window")),
    ("peer", "peer.pairing.cli:join", ("pair",)),
    ("peer", "peer.web.cli:join", ("open",)),
    ("peer", "peer.ledger.cli:join", ("federated",)),
    ("aggregator", "aggregator.desk.cli:join", ("desk", "openapi")),
    ("aggregator", "aggregator.estimator.cli:join", ("export-model",)),
    ("aggregator", "aggregator.lab.cli:join_aggregator", ("report",)),
    ("study", "aggregator.lab.cli:join_study", ("plan", "synthesize", "dry-round")),
    ("study", "examples.rehearsal:join", ("rehearse",)),
)

# Names that this module offers to programs, and where they are.
OFFERED = {
    "LocallyPrivateClassifier": "aggregator.estimator",
    "PublishedClassifier": "aggregator.estimator",
    "Study": "aggregator.notebook",
    "audit": "aggregator.audit",
    "ledger": "peer.ledger",
    "load_model": "anon.protocols.installed",
    "testing": "examples.testing",
}

# (socket, the part of a shell that another one's commands are given); see anon/kit/terminal/wiring.py.
PARTS = (
    ("the page", "peer.web.server:PageServer"),
    ("on the page", "peer.pairing.page:routes"),
    ("on the page", "peer.ledger.page:routes"),
    ("asking on the page", "peer.ledger.page:asking"),
    ("beside the page", "peer.desktop.notifier:reminding_beside"),
    ("run --stay", "peer.desktop.cli:run_and_stay"),
    ("serve", "aggregator.cli.serve:serve"),
    ("the desk", "aggregator.desk.server:serve_desk"),
    ("outlook", "aggregator.lab.planning.outlook:outlook_of"),
    ("cost of sums", "anon.protocols.installed:declared_epsilon"),
)
COMPLETION, HELP, ASKED = "completion", "help", "--help"
SHELLS = ("bash", "zsh", "fish")
COMPLETIONS = Path(__file__).with_name("anon") / "kit" / "terminal" / "completions"
LIVELY = 10_000
"""Objects that are made before garbage is looked for: what a command imports later is none either."""
USAGE = 2
INTERRUPTED = 130
_BEWARE = "do not rely on it: get the link or the file again, and compare its fingerprint with a public place"
_UNWRITABLE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")
_MORE_ROOM = "Make room on that disk, or choose a folder on another one"


def __getattr__(name: str) -> Any:
    """An offered name, imported when it is asked for. Raises `ImportError` where its extra is not installed."""
    if name not in OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(OFFERED[name])
        return getattr(module, name, module)
    except ModuleNotFoundError as error:
        raise ImportError(f"{name} needs an extra: {_missing(error)}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *OFFERED})


def main() -> None:
    """Run the command line; expected failures become one clear message and a documented exit code."""
    try:
        from anon.kit.terminal.streams import take_every_text
        from anon.machine.environment import take_secrets

        take_secrets()
        take_every_text()
        sys.exit(_run(sys.argv[1:]))
    except BaseException as error:
        sys.exit(_explain(error))


def _run(arguments: list[str]) -> int:
    if arguments and arguments[0] == HELP:
        arguments = [*arguments[1:], ASKED]
    name, *rest = arguments or [""]
    if name in ("-V", "--version"):
        from importlib.metadata import version

        sys.stdout.write(f"anonml {version('anonml')}\n")
        return 0
    if name in ("", "-h", ASKED):
        _help()
        return 0 if arguments else USAGE
    if name == COMPLETION:
        return _complete(rest)
    if (shown := _help_of(arguments)) is not None:
        sys.stdout.write(shown)
        return 0 if arguments[-1] == ASKED else USAGE
    from anon.kit.terminal.logs import to_stderr

    to_stderr()
    if arguments == ["--open-link"]:
        from anon.kit.page.browser import open_given

        return open_given()
    if name not in COMMANDS:
        known = ", ".join([*COMMANDS, COMPLETION, HELP])
        return _fail("usage", f"anonml: no command {name!r}; expected one of {known}", USAGE)
    try:
        _command(name, rest)(args=rest, prog_name=f"anonml {name}", obj=wiring())
    finally:
        gc.collect()  # a home in a cycle closes its database, whose log would stay beside it
    return 0


def _help_of(arguments: list[str]) -> str | None:
    """Help that loads no command: after `--help`, and of a group without one."""
    from anon.kit.terminal.helps import help_of

    return help_of(arguments[:-1]) if arguments[-1] == ASKED else help_of(arguments, groups=True)


def _command(name: str, rest: list[str]) -> Any:
    """A command with all that it needs imported: hardly any of that is ever garbage, and looking for it takes long."""
    gc.disable()
    try:
        app = _application(name, next(iter(rest), ""))
        from anon.kit.terminal.placeholders import placed

        return placed(app, next(iter(rest), ""))
    finally:
        gc.freeze()
        gc.set_threshold(LIVELY)
        gc.enable()


def wiring() -> Any:
    """The parts of other shells, by socket, that a command may use: `PARTS` as the commands take it."""
    from anon.kit.terminal.wiring import Wiring

    sockets = {socket: [part for name, part in PARTS if name == socket] for socket, _ in PARTS}
    return Wiring(sockets, frozenset(COMMANDS))


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
    from anon.kit.terminal.logs import places

    sys.stderr.write(f"Traceback (places only):\n{places(error)}\n")
    return _fail("bug", "a fault in this program; nothing is lost. Report the lines above: no data are in them", 1)


def _after(error: OSError) -> str:
    import errno

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
    from anon.kit.terminal.foreign import inline
    from anon.kit.terminal.printing import Terminal, styled

    # A message may quote a name out of a document, or of a file, that somebody else wrote: nothing of it begins a line.
    said = "\n  ".join(inline(line) for line in message.split("\n"))
    Terminal(stderr=True).print(styled("[bold red]{code}[/]: {said}", code=code, said=said))
    return exit_code


def application(name: str, wanted: str = "") -> Any:
    """The typer application of a command, with what shells add to it; with `wanted`, of the shell alone that adds that.

    Raises `ModuleNotFoundError` where a part of it is not installed.
    """
    from anon.kit.terminal.placeholders import name_of

    app = _imported(COMMANDS[name][0]).app
    own = set(map(name_of, app.registered_commands))
    added = [(part, wanted in names) for command, part, names in JOINED if command == name]
    everything = wanted not in own and not any(is_its for _, is_its in added)
    for part, is_its in added:
        if is_its or everything:
            _join(name, part)
    places = {each: place for place, (_, _, names) in enumerate(JOINED) for each in names}
    for registered in (app.registered_commands, app.registered_groups):  # whichever shell was asked for first
        registered.sort(key=lambda command: places.get(name_of(command), -1))
    return app


def _imported(module: str) -> Any:
    if module.startswith("examples.") and (beside := str(Path(__file__).resolve().parent)) not in sys.path:
        sys.path.insert(0, beside)
    return importlib.import_module(module)


@cache
def _join(name: str, part: str) -> None:
    place, _, join = part.partition(":")
    getattr(_imported(place), join)(_imported(COMMANDS[name][0]).app)


def _application(name: str, wanted: str = "") -> Any:
    try:
        return application(name, wanted)
    except ModuleNotFoundError as error:
        sys.exit(_fail("not-installed", _missing(error), 1))


def _missing(error: ModuleNotFoundError) -> str:
    """The part that is not installed, and the command that installs it. Raises the error where it is a part of ours."""
    from anon.machine.extras import install

    missing = (error.name or "").partition(".")[0]
    if missing in {"anon", "peer", "aggregator", "examples", ""}:
        raise error
    return f"{missing} is missing; `{install('aggregator')}`"


def _complete(arguments: list[str]) -> int:
    """Print a shell's completion script: the file that the wheel brings, so that a shell starts fast, or a new one."""
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        said = f"anonml {COMPLETION} {'|'.join(SHELLS)}: prints a script; bash: eval \"$(anonml {COMPLETION} bash)\""
        if arguments == ["--help"]:
            sys.stdout.write(said + "\n")
            return 0
        return _fail("usage", said, USAGE)
    carried = COMPLETIONS / f"anonml.{arguments[0]}"
    sys.stdout.write(carried.read_text("utf-8") if carried.is_file() else completion(arguments[0]))
    return 0


def completion(shell: str) -> str:
    """A shell's completion script, from all commands, whose imports take seconds. `bundle/wheel.py` keeps it in a file.

    A command of which a part is not installed is completed by its name alone.
    """
    from anon.kit.terminal.completion import Node, node_of, plain, script
    from anon.kit.terminal.placeholders import placed

    found = {name: Node(summary) for name, (_, summary) in COMMANDS.items()}
    for name in COMMANDS:
        with suppress(ModuleNotFoundError):
            found[name] = node_of(placed(application(name)))
    found[COMPLETION] = Node("Print a shell's completion script.", (), {known: Node() for known in SHELLS})
    found[HELP] = Node("Show what a command is for.", (), {name: plain(node) for name, node in found.items()})
    return script(shell, Node("", ("--help", "--version", "-V"), found))


def _help() -> None:
    from shutil import get_terminal_size
    from textwrap import fill

    from anon.machine.extras import install, lacks

    wide = min(get_terminal_size().columns, 100)
    lines = ["anonml: a model for the group, and nobody hands over their data.", ""]
    summaries = {name: summary for name, (_, summary) in COMMANDS.items()}
    summaries |= {
        COMPLETION: "Print a script that completes commands in bash, zsh or fish.",
        HELP: "Show what a command is for: anonml help peer join.",
    }
    indent = max(map(len, summaries)) + 11
    for name, summary in summaries.items():
        lines.append(fill(f"  anonml {name}".ljust(indent) + summary, wide, subsequent_indent=" " * indent))
    codes = (__doc__ or "").partition("Exit codes")[2]
    if lacks("aggregator"):
        lack = "The commands aggregator, study and simulate lack their packages here:"
        lines += ["", f"{lack} `{install('aggregator')}`"]
    lines += ["", fill(f"Each command has --help. -V tells the version. Exit codes{codes}", wide)]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
