"""Commands about what the aggregator said: proofs against it, and its chain as fingerprints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from attrs import asdict

from anon.errors import Refused
from anon.kit.terminal.foreign import inline
from anon.kit.terminal.options import JsonOption, StudyOption, print_json
from anon.kit.terminal.printing import Terminal, styled
from anon.text.foreign import Quoted
from peer.opening import DEFAULT_HOME, HomeOption, open_view, pick

if TYPE_CHECKING:
    from anon.protocols.tellers import PresentedTeller
    from anon.transparency.equivocation import Proof
    from anon.transparency.fingerprint import HeadPrint


def evidence(
    export: Annotated[
        Path | None, typer.Option(help="Write each proof to a file of its own: a new file, or a folder that exists.")
    ] = None,
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Proofs against an aggregator, if any were kept. Anyone checks one: `anonml evidence check FILE`.

    It told two stories, or gave somebody a credential that does not work.
    """
    from anon.transparency.proof_text import evidence_json, evidence_lines
    from peer.run.equivocations import kept

    proofs = [proof for proof in kept(open_view(home).store) if proof.study.hex().startswith(study.lower())]
    written = _export(proofs, export) if export is not None else []
    if as_json:
        print_json([evidence_json(proof) | {"proof": proof.to_bytes().hex()} for proof in proofs])
        return
    console = Terminal()
    for proof in proofs:
        for line in evidence_lines(proof):
            console.print(inline(line), soft_wrap=True)
    for file in written:
        console.print(f"written to {inline(str(file))}: anyone checks it with `anonml evidence check`")
    if not proofs:
        console.print("none")


def _export(proofs: list[Proof], where: Path) -> list[Path]:
    if not proofs:
        raise Refused("no evidence was kept; nothing to export")
    if where.is_dir():
        files = [where / f"{proof.study.hex()[:16]}-{proof.number}.evidence" for proof in proofs]
    elif len(proofs) > 1:
        raise Refused("several proofs: name a folder that exists, or one study with --study")
    else:
        files = [where]
    from anon.kit.terminal.equivocation import write_new

    for proof, file in zip(proofs, files, strict=True):
        write_new(file, proof.to_bytes())
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
    """The published documents that you saw, as words and a QR code to compare with a public place or with other
    members.

    Equal words at one number: the same roster, seed, credentials and thresholds up to there. Holds nothing about you.
    """
    from anon.kit.terminal import qr
    from anon.protocols.tellers import presented_tellers
    from anon.transparency.exported_chain import write_exported_chain
    from anon.transparency.fingerprint import head_prints, study_code, words
    from peer.run.equivocations import seen_chain

    peer = open_view(home)
    chosen = pick(peer, study)
    exported = seen_chain(peer.store, chosen)
    prints, tellers = head_prints(exported.chain), presented_tellers(exported.manifest)
    if export is not None:
        write_exported_chain(export, exported.manifest.to_bytes(), exported.chain)
    if number is not None and number >= len(prints):
        raise Refused(f"only the documents 0 to {len(prints) - 1} were seen so far; choose one of these")
    drawn = prints[-1 if number is None else number]
    if as_json:
        figures = {
            "study": chosen.hex(),
            "fingerprint": words(chosen),
            "heads": [head_print.figures() for head_print in prints],
            "tellers": [asdict(teller) for teller in tellers],
        }
        print_json(figures | {"qr": qr.figures(drawn.code), "study_qr": qr.figures(study_code(chosen))})
        return
    _show(chosen, prints, drawn)
    _show_tellers(tellers)


def _show_tellers(tellers: tuple[PresentedTeller, ...]) -> None:
    for teller in tellers:
        named = inline(Quoted(teller.name))
        told = styled(
            "teller {name}, words of its own, to compare with its own page: [bold]{words}[/]",
            name=named, words=teller.words,
        )
        Terminal().print(told, soft_wrap=True)


def _show(study: bytes, prints: tuple[HeadPrint, ...], drawn: HeadPrint) -> None:
    from anon.kit.terminal import qr
    from anon.transparency.fingerprint import words

    console = Terminal()
    console.print(styled("study: [bold]{words}[/]", words=words(study)))
    for head_print in prints:
        named = f"{head_print.number} {head_print.name}"
        console.print(styled("{document}: [bold]{words}[/]", document=named, words=head_print.words))
    qr.show(console, drawn.code)
    console.print(
        "The same words at the same number mean the same documents up to there. If another member or the public place "
        "has other words, `anonml peer fingerprint --export FOLDER` and `anonml evidence compare` make the proof."
    )
