"""`anonml doctor`: look at this installation and say one next action per fault."""

from __future__ import annotations

import typer

from anon.kit.diagnosis.installation import CHECKS
from anon.kit.terminal.findings import show
from anon.kit.terminal.options import JsonOption
from anon.kit.terminal.printing import Terminal
from anon.kit.terminal.wiring import wiring_of

TELLERS = "    a teller's home, disk and address: `anonml teller doctor`, with its --home if it has a folder of its own"
app = typer.Typer(add_completion=False, help="Look at this installation and say what to do next.")


@app.command()
def main(context: typer.Context, as_json: JsonOption = False) -> None:
    """Exit code 1 when something a peer needs does not work."""
    try:
        show([check() for check in CHECKS], as_json)
    finally:
        if not as_json and "teller" in wiring_of(context).commands:  # a program packed for peers has no tellers
            Terminal().print(TELLERS, soft_wrap=True)
