"""`anonml evidence ...`: what anyone can check about an aggregator's two stories, without a home and without asking."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from anon.errors import Malformed, Refused
from anon.evidence import MAX_BYTES, Evidence, ProvesNothing, compare_chains, parse_evidence
from anon.fingerprint import head_words, words
from anon.invite import parse_invite
from anon.story import read_story

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Check or make a proof that an aggregator told two stories."
)
JsonOption = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON.")]


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="What `anonml peer evidence --export` wrote.")],
    key: Annotated[str, typer.Option(help="The aggregator's key (64 hexadecimal digits), if you know it.")] = "",
    invite: Annotated[str, typer.Option(help="Any invite link of the study: its key and study are compared.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Verify evidence with nothing but the file. Exit code 0: it proves two stories; 5: it proves nothing."""
    expected = parse_invite(invite) if invite else None
    try:
        pinned = bytes.fromhex(key) if key else None
    except ValueError:
        raise Malformed("--key: expected 64 hexadecimal digits; copy it from an invite link") from None
    found = parse_evidence(_read(file), pinned or (expected.key if expected else None))
    if expected is not None and (found.study, found.key) != (expected.study, expected.key):
        raise ProvesNothing("it is about another study than the invite's; it proves nothing about this one")
    if as_json:
        sys.stdout.write(json.dumps(evidence_json(found), sort_keys=True) + "\n")
        return
    console = Console()
    for line in evidence_lines(found):
        console.print(escape(line), highlight=False, soft_wrap=True)
    if not (key or invite):
        console.print("Compare fingerprint or key with your invite link or a public place: they say whose it is.")


@app.command()
def compare(
    one: Annotated[Path, typer.Argument(help="From `anonml aggregator export` or `peer fingerprint --export`.")],
    other: Annotated[Path, typer.Argument(help="Another person's folder of the same study.")],
    output: Annotated[Path | None, typer.Option(help="Where to write the evidence when they differ.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare what two people were told. Exit code 0: one story as far as both go; 1: two, and here is the proof."""
    ours, theirs = read_story(one), read_story(other)
    if ours.manifest.study_id != theirs.manifest.study_id:
        raise Refused("the two folders are about different studies; compare two of one study")
    found = compare_chains(ours.manifest, ours.heads, theirs.heads)
    common = min(len(ours.chain), len(theirs.chain))
    if found is not None and output is not None:
        write_new(output, found.to_bytes())
    if as_json:
        verdict = {"one_story": found is None, "compared": common}
        told = evidence_json(found) if found is not None else {}
        sys.stdout.write(json.dumps(verdict | told, sort_keys=True) + "\n")
    else:
        lines = [f"one story in all {common} documents that both have"] if found is None else evidence_lines(found)
        for line in lines:
            Console().print(escape(line), highlight=False, soft_wrap=True)
    if found is not None:
        raise typer.Exit(1)


def evidence_lines(found: Evidence) -> list[str]:
    """What evidence says, for people."""
    one, other = found.first, found.second
    return [
        f"The key {found.key.hex()}",
        f"of the study {found.manifest.title!r} (id {found.study.hex()[:16]}..., fingerprint {words(found.study)})",
        f"signed two different documents number {found.number}:",
        f"  {one.head.kind} {one.head.part}: {head_words(one)}",
        f"  {other.head.kind} {other.head.part}: {head_words(other)}",
        "Both signatures verify: its aggregator told two stories (or was restored from a backup and went on elsewise).",
    ]


def evidence_json(found: Evidence) -> dict[str, Any]:
    """What evidence says, for programs."""
    heads = [
        {"kind": one.head.kind, "part": one.head.part, "digest": one.head.digest.hex(), "words": head_words(one)}
        for one in (found.first, found.second)
    ]
    return {
        "key": found.key.hex(),
        "study": found.study.hex(),
        "title": found.manifest.title,
        "fingerprint": words(found.study),
        "number": found.number,
        "heads": heads,
    }


def write_new(file: Path, content: bytes) -> None:
    """Write a new file. Raises `Refused` when there is one."""
    try:
        with file.open("xb") as stream:
            stream.write(content)
    except FileExistsError:
        raise Refused(f"{file}: already exists; name a new file") from None


def _read(file: Path) -> bytes:
    if file.stat().st_size > MAX_BYTES:
        raise ProvesNothing("far too long for evidence; name another file")
    return file.read_bytes()
