"""Where a study is served and who adds it up, as the terminal shows it before a yes."""

from __future__ import annotations

from collections.abc import Sequence

from anon.kit.terminal.foreign import inline
from anon.kit.terminal.printing import Terminal, styled
from anon.text.foreign import Quoted, whole_place
from anon.text.sentences import joined
from peer.rules.tellers import LONGEST_SHOWN, NamedTeller, other_words


def show_teller(console: Terminal, teller: NamedTeller) -> None:
    """The words in a line of their own, to be compared."""
    where = f"at {inline(whole_place(teller.address))}" + ", with the words of before" * teller.known
    console.print(f"Teller {inline(Quoted(teller.name, LONGEST_SHOWN))} {where}:", soft_wrap=True)
    console.print(styled("  [bold]{words}[/]", words=teller.words), soft_wrap=True)
    if teller.earlier:
        console.print(styled("[bold yellow]caution:[/] {told}", told=inline(other_words(teller))))


def served(addresses: Sequence[str]) -> str:
    """The addresses at which everybody is served."""
    listed_here = joined((whole_place(address) for address in addresses), ", ")
    named = inline(listed_here) or "one machine alone, through no network"
    drawn = f", {len(addresses)} addresses of which each exchange draws one" if len(addresses) > 1 else ""
    return f"Served to everybody at {named}{drawn}"
