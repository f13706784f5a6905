"""`anonml evidence ...`: proofs against an aggregator, checked without a home and without asking anybody."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anon.errors import Malformed, Refused
from anon.kit.terminal.foreign import inline
from anon.kit.terminal.options import JsonOption, print_json
from anon.kit.terminal.printing import Terminal
from anon.storage.private_files import new_private
from anon.transparency.equivocation import MAX_BYTES, compare_chains, parse_evidence
from anon.transparency.exported_chain import read_exported_chain
from anon.transparency.proof_text import evidence_json, evidence_lines
from anon.transparency.proves import ProvesNothing
from anon.wire.invite import parse_invite

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Check or make a proof against an aggregator."
)


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="The file that `anonml peer evidence --export` wrote.")],
    key: Annotated[str, typer.Option(help="The aggregator's key (64 hexadecimal digits), if you know it.")] = "",
    invite: Annotated[str, typer.Option(help="Any invite link of the study: its key and study are compared.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Verify evidence with nothing but the file. Exit code 0: it proves what it prints; 5: it proves nothing."""
    expected = parse_invite(invite) if invite else None
    try:
        pinned = bytes.fromhex(key) if key else None
    except ValueError:
        raise Malformed("--key: expected 64 hexadecimal digits; copy it from an invite link") from None
    proof = parse_evidence(_read(file), pinned or (expected.key if expected else None))
    if expected is not None and (proof.study, proof.key) != (expected.study, expected.key):
        raise ProvesNothing("it is about another study than the invite's; it proves nothing about this one")
    if as_json:
        print_json(evidence_json(proof))
        return
    console = Terminal()
    for line in evidence_lines(proof):
        console.print(inline(line), soft_wrap=True)
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
    ours, theirs = read_exported_chain(one), read_exported_chain(other)
    if ours.manifest.study_id != theirs.manifest.study_id:
        raise Refused("the two folders are about different studies; compare two of one study")
    proof = compare_chains(ours.manifest, ours.heads, theirs.heads)
    common = min(len(ours.chain), len(theirs.chain))
    if proof is not None and output is not None:
        write_new(output, proof.to_bytes())
    if as_json:
        verdict = {"one_story": proof is None, "compared": common}
        statement = evidence_json(proof) if proof is not None else {}
        print_json(verdict | statement)
    else:
        lines = [f"one story in all {common} documents that both have"] if proof is None else evidence_lines(proof)
        for line in lines:
            Terminal().print(inline(line), soft_wrap=True)
    if proof is not None:
        raise typer.Exit(1)


def write_new(file: Path, content: bytes) -> None:
    """Write a new file for its owner alone: it says whose study was joined. Raises `Refused` when there is one."""
    try:
        with new_private(file) as stream:
            stream.write(content)
    except FileExistsError:
        raise Refused(f"{file}: already exists; name a new file") from None


def _read(file: Path) -> bytes:
    if file.stat().st_size > MAX_BYTES:
        raise ProvesNothing("far too long for evidence; name another file")
    return file.read_bytes()
