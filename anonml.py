"""The command `anonml`: the one place that may reach both the peer's and the aggregator's side, each only when asked.

Exit codes: 0 done; 1 failed; 2 wrong use of the command line; 3 malformed input; 4 refused by policy; 5 a proof or
signature was rejected; 6 conflict with what is there; 7 the other side cannot be reached.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from anon.errors import AnonmlError

# name: (module with a typer application called `app`, what it is for)
COMMANDS = {
    "peer": ("peer.cli", "Keep your data, join studies, see what was sent."),
    "aggregator": ("aggregator.cli", "Run studies: invite, serve, watch, export, audit."),
    "study": ("aggregator.cli_study", "Write, check and publish a study; try it on synthetic data."),
    "simulate": ("aggregator.cli_simulate", "Predict a study's result on data you have, without any network."),
    "demo": ("examples.demo", "Run a whole study on this machine: census or mooc."),
    "doctor": ("examples.doctor", "Look at this installation and say what to do next."),
}
USAGE = 2


def main() -> None:
    """Run the command line; expected failures become one clear message and a documented exit code."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        _help(Console())
        sys.exit(0 if arguments else USAGE)
    name, *rest = arguments
    if name not in COMMANDS:
        Console(stderr=True).print(f"anonml: no command {name!r}; expected one of {', '.join(COMMANDS)}")
        sys.exit(USAGE)
    try:
        _application(name)(args=rest, prog_name=f"anonml {name}")
    except AnonmlError as error:
        Console(stderr=True).print(f"[bold red]{error.code}[/]: {escape(str(error))}", highlight=False)
        sys.exit(error.exit_code)


def _application(name: str) -> Any:
    module = COMMANDS[name][0]
    if module.startswith("examples."):
        sys.path.insert(0, str(Path(__file__).resolve().parent))
    try:
        return importlib.import_module(module).app
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in {"anon", "peer", "aggregator", ""}:
            raise
        Console(stderr=True).print(
            f"anonml {name} needs {missing}: for the aggregator's side install 'anonml\\[aggregator]'; "
            "demos run from a checkout of the project"
        )
        sys.exit(1)


def _help(console: Console) -> None:
    console.print("[bold]anonml[/]: a model for the group, and nobody hands over their data.\n")
    table = Table(box=None, show_header=False, pad_edge=True)
    for name, (_, summary) in COMMANDS.items():
        table.add_row(f"anonml {name}", summary)
    console.print(table)
    console.print("\nEach command has --help. " + (__doc__ or "").split("\n\n", 1)[1].strip(), highlight=False)


if __name__ == "__main__":
    main()
