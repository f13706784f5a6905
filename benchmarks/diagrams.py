"""Diagrams of the life of a study and of a packet on a peer, drawn from the tables that the program moves along.

    python -m benchmarks.diagrams            write them between their markers in docs/protocol.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from peer.rules.lifecycle import LAST, TABLE, Effect
from peer.rules.packet_lifecycle import PACKET_TABLE, PacketEffect

PAGE = Path(__file__).resolve().parents[1] / "docs/protocol.md"
Arrow = tuple[StrEnum | None, StrEnum, StrEnum, Iterable[StrEnum]]
"""From which state, by which event, to which state, with which effects."""


def mermaid(arrows: Iterable[Arrow]) -> str:
    """A state diagram that begins where no arrow leads and ends where none leads on. Arrows with equal ends are one."""
    labels: dict[tuple[str, str], list[str]] = {}
    for before, event, after, effects in arrows:
        label = " + ".join([event, *(effect.upper() for effect in effects)])
        labels.setdefault((_node(before), _node(after)), []).append(label)
    befores, afters = {before for before, _after in labels}, {after for _before, after in labels}
    begin = [f"    [*] --> {state}" for state in sorted(befores - afters - {"[*]"})]
    lines = [f"    {before} --> {after}: {', '.join(events)}" for (before, after), events in labels.items()]
    end = [f"    {state} --> [*]" for state in sorted(afters - befores)]
    return "\n".join(["```mermaid", "stateDiagram-v2", *begin, *lines, *end, "```"])


def _node(state: StrEnum | None) -> str:
    return "[*]" if state is None else state.replace("-", "_")


def study_diagram() -> str:
    """The life of a study. The effects that every last state has are left to the text."""
    end = (Effect.RETURN_REST, Effect.ERASE)
    arrows = [
        (before, event, moved.state, () if moved.state in LAST and moved.effects == end else moved.effects)
        for (before, event), moved in TABLE.items()
    ]
    return mermaid(arrows)


def packet_diagram() -> str:
    """The life of a packet."""
    return mermaid(
        (before, event, moved.status, [one for one in moved.effects if isinstance(one, PacketEffect)])
        for (before, event), moved in PACKET_TABLE.items()
    )


DIAGRAMS: Mapping[str, str] = {"study": study_diagram(), "packet": packet_diagram()}


def filled(page: str) -> str:
    """The page with every diagram between its markers. Raises `ValueError` where a marker is missing."""
    for name, diagram in DIAGRAMS.items():
        begin, end = f"<!-- diagram: {name} -->\n", f"<!-- end: {name} -->"
        before, rest = page.split(begin)
        _old, after = rest.split(end)
        page = f"{before}{begin}{diagram}\n{end}{after}"
    return page


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
