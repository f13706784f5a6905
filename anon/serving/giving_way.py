"""Which connection gives way to a newer one, and which has had its time: the one policy of all our servers. Pure.

1. A server holds as many connections as its process may have open files, some of which stay spare. It never holds more
   than `MOST_CONNECTIONS`.
2. Where one more comes, the stillest of those that are still asking give way: silence, half a head, an unfinished body.
   A connection is the stiller the fewer bytes of its body came for each second of its age. Each is credited with
   `CREDIT` bytes, so that among those without a body the oldest is the stillest.
3. A request that came whole is worked on, and does not give way. Where all are worked on, the newest is turned away.
4. Connections that wait until their answer is read have places of their own: of too many of them the one that has read
   the fewest bytes for each second gives way. They also give way where nobody is asking any more.
5. A caller who proved who it is before its body came gives way to no stranger. Each such caller has
   `PLACES_OF_A_CALLER`, all of them together have half of all places, and among themselves they follow rule 2.
6. The bytes that came of open connections are bounded, strangers' and proven callers' apart: the stillest body gives
   way.
7. A body that began brings `LEAST_RATE` bytes a second after `GRACE` seconds, and is whole within its time. A head has
   a time, and so has a connection as a whole.

So a post that brought b bytes and then stalls for s seconds keeps its place, unless strangers bring more than about
L (b + CREDIT) / s bytes a second, where L is the number of places. One that brought none keeps it unless more than
L / s new connections come each second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from heapq import nsmallest
from math import inf

from attrs import define

from anon.values import frozen

MOST_CONNECTIONS = 16_384
CREDIT = 128
"""Bytes: about the length of a head."""
AT_ONCE = 64
"""One in so many gives way at once, since finding the stillest means looking at all."""
PLACES_OF_A_CALLER = 64
LEAST_RATE, GRACE = 256, 20.0
MOST_BYTES = 2**27
_MOST_READERS = 2048
_LEAST_SPARE, _MOST_SPARE = 96, 512
_INSTANT = 1e-3


class RequestStage(Enum):
    """How far the request of a connection has come."""

    ASKING = "its head has not come whole"
    BODY = "its body has not come whole"
    WORK = "it is being answered"
    READING = "its answer waits to be read"


@define(eq=False)
class ConnectionStanding:
    """One connection, in seconds of a monotonic clock and in bytes.

    `came`: when it came. `body_since`: when its body began; `brought`: bytes of the body; `reading_since`: when its
    answer first had to wait; `read`: bytes of the answer that were read since. `caller`: the key of a proven caller.
    """

    came: float
    body_since: float = inf
    brought: int = 0
    reading_since: float = inf
    read: int = 0
    caller: bytes = b""
    stage: RequestStage = RequestStage.ASKING

    def rate(self, now: float) -> float:
        """Bytes for each second of its age."""
        return (CREDIT + self.brought) / max(now - self.came, _INSTANT)

    def reading_rate(self, now: float) -> float:
        """Bytes of the answer for each second since it first waited."""
        return self.read / max(now - self.reading_since, _INSTANT)


@frozen
class Limits:
    """Of one server: places, bytes of bodies, bytes a second, and seconds for head, body and connection."""

    connections: int
    held: float = MOST_BYTES
    head_seconds: float = 60.0
    body_seconds: float = 60.0
    longest: float = 600.0
    least_rate: float = LEAST_RATE

    @property
    def readers(self) -> int:
        """The places of those that wait until their answer is read."""
        return min(max(self.connections // 2, 1), _MOST_READERS)

    @property
    def callers(self) -> int:
        """The places of all proven callers together."""
        return max(self.connections // 2, 1)

    @property
    def at_once(self) -> int:
        """So many give way when there is no place left."""
        return max(self.connections // AT_ONCE, 1)


def places(files: int) -> int:
    """Rule 1: of this many open files."""
    spare = min(max(files // 4, _LEAST_SPARE), _MOST_SPARE)
    return min(max(files - spare, files // 4, 1), MOST_CONNECTIONS)


def give_way(standings: Iterable[ConnectionStanding], now: float, count: int) -> list[ConnectionStanding]:
    """Rules 2 to 5: up to `count` strangers that give way to newer connections, the stillest first."""
    strangers = [standing for standing in standings if not standing.caller]
    asking = [standing for standing in strangers if standing.stage in (RequestStage.ASKING, RequestStage.BODY)]
    if asking:
        return _stillest(asking, now, count)
    return slowest_readers(strangers, now, count)


def callers_give_way(
    standings: Collection[ConnectionStanding], now: float, newest: ConnectionStanding, limits: Limits
) -> list[ConnectionStanding]:
    """Rule 5, when `newest` has proven its caller: the one of proven callers that gives way to it, or none. It may be
    `newest` itself."""
    proven = [standing for standing in standings if standing.caller]
    own = [standing for standing in proven if standing.caller == newest.caller]
    crowd = own if len(own) > PLACES_OF_A_CALLER else proven if len(proven) > limits.callers else []
    unfinished = [standing for standing in crowd if standing.stage is not RequestStage.WORK and standing is not newest]
    return (_stillest(unfinished, now, 1) or [newest]) if crowd else []


def bodies_give_way(
    standings: Iterable[ConnectionStanding], now: float, newest: ConnectionStanding
) -> ConnectionStanding:
    """Rule 6, when the bytes of `newest` are too many: the one whose body is given up."""
    bodies = [standing for standing in standings if standing.stage is RequestStage.BODY]
    same = [standing for standing in bodies if bool(standing.caller) == bool(newest.caller)]
    unfinished = [standing for standing in same if standing.brought > 0 and standing is not newest]
    return (_stillest(unfinished, now, 1) or [newest])[0]


def slowest_readers(standings: Iterable[ConnectionStanding], now: float, count: int) -> list[ConnectionStanding]:
    """Rule 4: those that give way, the slowest first."""
    reading = [standing for standing in standings if standing.stage is RequestStage.READING]
    return nsmallest(count, reading, key=lambda reader: (reader.reading_rate(now), reader.reading_since))


def overdue(standing: ConnectionStanding, now: float, limits: Limits) -> bool:
    """Rule 7."""
    age, body = now - standing.came, now - standing.body_since
    if age > limits.longest:
        return True
    if standing.stage is RequestStage.ASKING:
        return standing.body_since == inf and age > limits.head_seconds
    slow = standing.brought < limits.least_rate * (body - GRACE)
    return standing.stage is RequestStage.BODY and (body > limits.body_seconds or slow)


def _stillest(standings: Iterable[ConnectionStanding], now: float, count: int) -> list[ConnectionStanding]:
    return nsmallest(count, standings, key=lambda standing: (standing.rate(now), standing.came))
