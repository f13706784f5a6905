"""The table of outages: each long-lived command in each kind of outage, as `docs/reference/operations.md` shows it.

A cell says what goes on, the words by which it is told, and the exit code of a command that ends. A test meets every
cell with the real command (`tests/outages`), so a cell without a test fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from anon.values import frozen


class Outage(StrEnum):
    """A kind of outage; the value is its heading."""

    DATABASE = "The database's server restarts, or is away"
    FULL = "A disk is full"
    READ_ONLY = "The folder is read-only"
    NETWORK = "The network is away"
    CLOCK = "The clock is five hours off"
    CUT = "A file is cut"
    TAKEN = "The port is taken at the start"
    KILLED = "SIGKILL"


@frozen
class OutageCell:
    """One command in one outage. `said`: a part of the line that tells it, empty where there is nothing to tell.
    `code`: the exit code, None for a command that goes on."""

    goes_on: str
    said: str = ""
    code: int | None = None


SERVE, DESK = "aggregator serve", "aggregator desk"
TELLER = "teller serve"
RUN, STAY, PAGE, PAIR = "peer run", "peer run --stay", "peer open", "peer pair"
AGGREGATORS, PEERS = (SERVE, DESK), (RUN, STAY, PAGE)
_UNWRITTEN = "cannot be written"
_COMES_AGAIN = "It is not acknowledged, and peers come again with it."
_FROM_HERE = "The next start goes on from here. All that was acknowledged is there, once."
_RESTORE = "Nothing of that file is used or replaced. The next start ends with the code, until a backup is restored."
_LOST = "The studies that it serves cannot go on. The next start ends with the code too."
_OWN_PORT = "Nothing was begun. The next start, at a free port, loses nothing."

TABLE: Mapping[Outage, Mapping[str, OutageCell]] = {
    Outage.DATABASE: dict.fromkeys(
        AGGREGATORS,
        OutageCell(
            f"Nothing that comes in is kept. {_COMES_AGAIN} Studies go on within half a minute of its return. A line "
            "then says “all studies can go on again”.",
            "the database's server does not answer",
        ),
    ),
    Outage.FULL: {
        SERVE: OutageCell(f"Published documents are served. Nothing that comes in is kept. {_COMES_AGAIN}", _UNWRITTEN),
        DESK: OutageCell("The same. A link that lets a browser in stays good until it can be used.", _UNWRITTEN),
        TELLER: OutageCell("It answers no call that has to be kept, and aggregators ask again.", _UNWRITTEN),
        **dict.fromkeys(PEERS, OutageCell("Due work is tried again. Nothing leaves that was not stored.", _UNWRITTEN)),
        PAIR: OutageCell("Phones stay in until the time is over, and can be revoked once there is room.", _UNWRITTEN),
    },
    Outage.NETWORK: {
        **dict.fromkeys(
            AGGREGATORS, OutageCell("Studies go on. Its tor and its onion addresses are put up again.", "onion address")
        ),
        TELLER: OutageCell("Its tor and its onion address are put up again. Aggregators ask again.", "onion address"),
        **dict.fromkeys(
            PEERS,
            OutageCell("Due work is tried again, at random times within its window.", "cannot reach the aggregator"),
        ),
        PAIR: OutageCell("Phones cannot come in meanwhile. Pairing ends when its tor does, or its time is over."),
    },
    Outage.CLOCK: {
        **dict.fromkeys(
            AGGREGATORS,
            OutageCell(
                "Windows go by its clock: they open and close too early or too late.", "this machine's clock leapt"
            ),
        ),
        TELLER: OutageCell("Nothing of a teller goes by the wall clock."),
        **dict.fromkeys(
            PEERS,
            OutageCell("Windows keep their place for half an hour, until the clock is believed.", "clock looks wrong"),
        ),
        PAIR: OutageCell("Its time is over as early as either clock says.", "its time is over", 0),
    },
    Outage.CUT: {
        **dict.fromkeys(AGGREGATORS, OutageCell(f"It goes on without its studies. {_RESTORE}", "damaged", 8)),
        TELLER: OutageCell(f"It ends when it reads there. {_LOST}", "damaged", 8),
        RUN: OutageCell(f"It ends. {_RESTORE}", "damaged", 8),
        **dict.fromkeys((STAY, PAGE), OutageCell(f"Nothing leaves any more. {_RESTORE}", "damaged", 8)),
        PAIR: OutageCell(f"Phones are shown the fault. {_RESTORE}", "damaged", 8),
    },
    Outage.TAKEN: {
        SERVE: OutageCell(_OWN_PORT, "choose another port", 1),
        DESK: OutageCell(_OWN_PORT, "is taken", 4),
        TELLER: OutageCell(_OWN_PORT, "choose another port", 1),
        PAGE: OutageCell(_OWN_PORT, "is taken", 4),
    },
    Outage.KILLED: {
        **dict.fromkeys((*AGGREGATORS, TELLER, *PEERS), OutageCell(_FROM_HERE, code=137)),
        PAIR: OutageCell("Links and keys are worth nothing any more. The next start draws others.", code=137),
    },
}
TABLE = {**TABLE, Outage.READ_ONLY: TABLE[Outage.FULL]}
"""By outage and command. A command that is not there has no such part: no database's server, or no port."""
COMMANDS = (SERVE, DESK, TELLER, RUN, STAY, PAGE, PAIR)
