"""Commands about what the aggregator said: its two stories as evidence, and the one story as fingerprints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from anon import qr
from anon.cli_evidence import evidence_json, evidence_lines, write_new
from anon.errors import Refused
from anon.evidence import Evidence
from anon.fingerprint import HeadPrint, head_prints, study_code, words
from anon.story import write_story
from peer.cli.options import DEFAULT_HOME, HomeOption, JsonOption, StudyOption, open_peer, pick, print_json
from peer.evidence import kept, told


def evidence(
    export: Annotated[
        Path | None, typer.Option(help="Write each proof to a file of its own: a new file, or a folder that exists.")
    ] = None,
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Proofs that an aggregator told two stories, if any were kept. Anyone checks one: `anonml evidence check FILE`."""
    found = [one for one in kept(open_peer(home).store) if one.study.hex().startswith(study.lower())]
    written = _export(found, export) if export is not None else []
    if as_json:
        print_json([evidence_json(one) | {"proof": one.to_bytes().hex()} for one in found])
        return
    console = Console()
    for one in found:
        for line in evidence_lines(one):
            console.print(escape(line), highlight=False, soft_wrap=True)
    for file in written:
        console.print(f"written to {escape(str(file))}: anyone checks it with `anonml evidence check`", highlight=False)
    if not found:
        console.print("none")


def _export(found: list[Evidence], where: Path) -> list[Path]:
    if not found:
        raise Refused("no evidence was kept; nothing to export")
    if where.is_dir():
        files = [where / f"{one.study.hex()[:16]}-{one.number}.evidence" for one in found]
    elif len(found) > 1:
        raise Refused("several proofs: name a folder that exists, or one study with --study")
    else:
        files = [where]
    for one, file in zip(found, files, strict=True):
        write_new(file, one.to_bytes())
    return files


def fingerprint(
    number: Annotated[int | None, typer.Option(help="Draw the code of this document; the last one seen if left out.")]
    = None,
    export: Annotated[
        Path | None, typer.Option(help="A new folder for the signed heads you saw, for others to compare with theirs.")
    ] = None,
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """What you were told, as words and a QR code to compare with a public place or with other members.

    Equal words at one number: the same roster, seed, credentials and thresholds up to there. Holds nothing about you.
    """
    peer = open_peer(home)
    chosen = pick(peer, study)
    story = told(peer.store, chosen)
    prints = head_prints(story.chain)
    if export is not None:
        write_story(export, story.manifest.to_bytes(), story.chain)
    if number is not None and number >= len(prints):
        raise Refused(f"only the documents 0 to {len(prints) - 1} were seen so far; choose one of these")
    drawn = prints[-1 if number is None else number]
    if as_json:
        figures = {"study": chosen.hex(), "fingerprint": words(chosen), "heads": [one.figures() for one in prints]}
        print_json(figures | {"qr": qr.figures(drawn.code), "study_qr": qr.figures(study_code(chosen))})
        return
    _show(chosen, prints, drawn)


def _show(study: bytes, prints: tuple[HeadPrint, ...], drawn: HeadPrint) -> None:
    console = Console()
    console.print(f"study: [bold]{words(study)}[/]", highlight=False)
    for one in prints:
        console.print(f"{one.number} {one.name}: [bold]{one.words}[/]", highlight=False)
    qr.show(console, drawn.code)
    console.print(
        "The same words at the same number mean the same documents up to there. If another member or the public place "
        "has other words, `anonml peer fingerprint --export DIR` and `anonml evidence compare` make the proof."
    )
