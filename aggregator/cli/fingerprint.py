"""`anonml aggregator fingerprint`: what to put in a public place, so that nobody can be told another story alone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from aggregator.app import AggregatorApp
from aggregator.opening import DEFAULT_HOME, HomeOption, existing, pick
from anon.kit.terminal import qr
from anon.kit.terminal.options import JsonOption, StudyOption, finished, print_json
from anon.kit.terminal.printing import Terminal, styled
from anon.transparency.fingerprint import HeadPrint, head_prints, listing, study_code, words


def fingerprint(
    codes: Annotated[bool, typer.Option("--qr", help="Draw the codes of the study and of the last document.")] = False,
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """The study's fingerprint and that of every document signed so far, for a public place; peers compare theirs."""

    async def work() -> tuple[bytes, str, tuple[HeadPrint, ...]]:
        async with AggregatorApp(existing(home)) as aggregator:
            live = aggregator.study(pick(aggregator, study))
            return live.study, listing(live.study, live.chain), head_prints(live.chain)

    chosen, text, prints = finished(work())
    if as_json:
        figures = {
            "study": chosen.hex(),
            "fingerprint": words(chosen),
            "heads": [head_print.figures() for head_print in prints],
        }
        print_json(figures | {"qr": qr.figures(prints[-1].code), "study_qr": qr.figures(study_code(chosen))})
        return
    sys.stdout.write(text)
    if codes:
        for code in (study_code(chosen), prints[-1].code):
            qr.show(Terminal(), code)


def show_study_code(console: Terminal, study: bytes) -> None:
    """A study's fingerprint in words and as a code, beside its invites. Never an invite's code."""
    console.print(styled("fingerprint [bold]{words}[/]: put it where everyone can compare it", words=words(study)))
    qr.show(console, study_code(study))
