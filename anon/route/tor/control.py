"""Tor's control port, over its unix socket or where there are none (Windows) over a port of this machine:
authentication both ways, and the few commands that AnonML needs.

A line-by-line client with nothing of tor's network in it. The replies of tor are read by `replies`; no error quotes a
key.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from weakref import WeakSet

from attrs import field

from anon.errors import Malformed, Refused, Unreachable, because
from anon.route.tor.replies import ASYNCHRONOUS, ReplyParser, TorEvent, TorReply, arguments, event_of
from anon.values import frozen

COMMAND_SECONDS = 30.0
COOKIE_BYTES = 32
_SERVER = b"Tor safe cookie authentication server-to-controller hash"  # control-spec, section 3.24
_CLIENT = b"Tor safe cookie authentication controller-to-server hash"
_EVENTS_HELD = 65_536
_CHUNK = 65_536
_PORT = re.compile(r"PORT=127\.0\.0\.1:([0-9]{1,5})\s*\Z")
_WORD = re.compile(r"[\x21-\x7e]+\Z")
_LINE = re.compile(r"[\x20-\x7e]+\Z")
_SERVICE_ID = re.compile(r"[a-z2-7]{56}\Z")


def has_unix_sockets() -> bool:
    """True if tor is spoken to over a unix socket here."""
    return hasattr(asyncio, "open_unix_connection")


async def _opened(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if has_unix_sockets():
        return await asyncio.open_unix_connection(str(path))
    return await asyncio.open_connection("127.0.0.1", _port_in(path))


def _port_in(file: Path) -> int:
    """The port that tor wrote there. Raises `ValueError` where it names none of this machine."""
    named = _PORT.match(file.read_text("ascii"))
    if named is None:
        raise ValueError("the file names no port")
    return int(named[1])


@frozen
class Onion:
    """A running v3 service. `service_id`: 56 characters, without `.onion`. `private_key`: `ED25519-V3:...`; the given
    one, or the new one."""

    service_id: str
    private_key: str = field(repr=False)


class Events:
    """The events since it was made; iterate it. Ends when the control connection does. Holds the latest 65,536 unread
    ones; `missed` counts those that were dropped for them."""

    def __init__(self) -> None:
        self.missed = 0
        self._held: deque[TorEvent] = deque()
        self._arrived = asyncio.Event()
        self._over = False

    def __aiter__(self) -> AsyncIterator[TorEvent]:
        return self

    async def __anext__(self) -> TorEvent:
        while not self._held:
            if self._over:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        return self._held.popleft()

    def put(self, event: TorEvent) -> None:
        """Add one; the controller does."""
        if len(self._held) >= _EVENTS_HELD:
            self._held.popleft()
            self.missed += 1
        self._held.append(event)
        self._arrived.set()

    def end(self) -> None:
        """No more will come."""
        self._over = True
        self._arrived.set()


class Controller:
    """One authenticated control connection. Commands may be given concurrently; replies keep their order.

    Every method raises `Unreachable` once tor is gone or has spoken nonsense, and `Refused` when tor says no.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._waiting: deque[asyncio.Future[TorReply]] = deque()
        # Weakly: a listener that nobody holds any more must not go on filling up.
        self._listeners: WeakSet[Events] = WeakSet()
        self._watched: list[tuple[str, ...]] = []
        self._ended: str | None = None
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(
        cls,
        path: Path,
        cookie: bytes,
        random_bytes: Callable[[int], bytes] = os.urandom,
        seconds: float = COMMAND_SECONDS,
    ) -> Controller:
        """A connection to the control socket at `path`, or to the port that the file there names, authenticated by
        SAFECOOKIE with tor's cookie (32 bytes).

        Tor must prove that it knows the cookie before our proof is sent. Raises `Unreachable` when nobody listens,
        `Refused` when either proof fails.
        """
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await _opened(path)
        except (OSError, ValueError, TimeoutError) as error:
            raise Unreachable(f"tor's control socket is silent{because(error)}; start tor again") from None
        control = cls(reader, writer)
        try:
            await control._authenticate(cookie, random_bytes(COOKIE_BYTES), seconds)
        # A cancelled call too: else the reading task would outlive it.
        except BaseException:
            await control.close()
            raise
        return control

    async def _authenticate(self, cookie: bytes, nonce: bytes, seconds: float) -> None:
        if len(cookie) != COOKIE_BYTES:
            raise Refused(f"tor's cookie: expected {COOKIE_BYTES} bytes, got {len(cookie)}; start tor again")
        reply = await self.command(f"AUTHCHALLENGE SAFECOOKIE {nonce.hex()}", seconds)
        try:
            challenge = arguments(reply.lines[-1].text)[1]
            server_nonce, proof = bytes.fromhex(challenge["SERVERNONCE"]), bytes.fromhex(challenge["SERVERHASH"])
        except (KeyError, ValueError, Malformed):
            raise Refused("tor's answer to the authentication challenge is not one; start tor again") from None
        # Both nonces are in both proofs, so that none can be kept and shown again (control-spec, section 3.24).
        spoken = cookie + nonce + server_nonce
        if len(server_nonce) != 32 or not hmac.compare_digest(hmac.digest(_SERVER, spoken, hashlib.sha256), proof):
            raise Refused("what listens on tor's control socket does not know tor's cookie; end it and start tor again")
        await self.command(f"AUTHENTICATE {hmac.digest(_CLIENT, spoken, hashlib.sha256).hex()}", seconds)

    @property
    def closed(self) -> bool:
        """True if the connection is over."""
        return self._ended is not None

    @property
    def events(self) -> Events:
        """A new subscription to everything that tor reports from now on (see `watching`)."""
        listener = Events()
        self._listeners.add(listener)
        if self._ended is not None:
            listener.end()
        return listener

    async def command(self, line: str, seconds: float = COMMAND_SECONDS) -> TorReply:
        """Tor's reply to one line of printable ASCII. Raises `Refused` for a reply of 4xx or 5xx."""
        if not _LINE.match(line):
            raise Refused("tor's control port: a command is one line of printable ASCII; correct it")
        if self._ended is not None:
            raise Unreachable(self._ended)
        answer: asyncio.Future[TorReply] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # its asker may have given up
        self._waiting.append(answer)
        try:
            async with asyncio.timeout(seconds):
                self._writer.write(line.encode() + b"\r\n")
                await self._writer.drain()
                reply = await answer
        except TimeoutError:
            raise Unreachable(f"tor's control port did not answer in {seconds:g} seconds; start tor again") from None
        except OSError:
            raise Unreachable("tor's control port closed; start tor again") from None
        if reply.status >= 400:
            raise Refused(_refusal(line, reply))
        return reply

    async def get_info(self, *keys: str) -> dict[str, str]:
        """GETINFO: the value of each key. Raises `Refused` for one that tor does not know."""
        return (await self.command(" ".join(("GETINFO", *map(_word, keys))))).values()

    async def signal(self, name: str) -> None:
        """SIGNAL, such as NEWNYM, HUP or HALT."""
        await self.command(f"SIGNAL {_word(name)}")

    @contextlib.asynccontextmanager
    async def watching(self, *names: str) -> AsyncIterator[Events]:
        """A subscription; tor reports events of these kinds until the block ends."""
        self._watched.append(names)
        try:
            await self._tell_events()
            yield self.events
        finally:
            self._watched.remove(names)
            with contextlib.suppress(Unreachable):
                await self._tell_events()

    async def _tell_events(self) -> None:
        names = set().union(*self._watched)
        await self.command(" ".join(("SETEVENTS", *map(_word, sorted(names)))))

    async def take_ownership(self) -> None:
        """TAKEOWNERSHIP: tor ends when this connection does, at once also when this process is killed."""
        await self.command("TAKEOWNERSHIP")

    async def add_onion(
        self,
        key: str,
        ports: Sequence[str],
        *,
        proof_of_work: bool = True,
        client_keys: Sequence[str] = (),
        most_streams: int = 0,
    ) -> Onion:
        """Run a v3 onion service for as long as this connection lasts.

        `key` is `NEW:ED25519-V3` or `ED25519-V3:...`; `ports` are `PORT,TARGET` with a target `host:port` or
        `unix:/path`; `client_keys` are base32 x25519 public keys, and then nobody else is let in. `proof_of_work` turns
        tor's defence against floods on. A circuit with more than `most_streams` streams at once is closed, with all of
        them; 0 for any number.
        """
        if not ports:
            raise Refused("an onion service needs at least one port; name one")
        words = ["ADD_ONION", _word(key)]
        flags = ["V3Auth"] * bool(client_keys) + ["MaxStreamsCloseCircuit"] * bool(most_streams)
        if flags:
            words.append(f"Flags={','.join(flags)}")
        if most_streams:
            words.append(f"MaxStreams={most_streams}")
        if proof_of_work:
            words.append("PoWDefensesEnabled=1")
        words += [f"Port={_word(port)}" for port in ports]
        words += [f"ClientAuthV3={_word(client)}" for client in client_keys]
        values = (await self.command(" ".join(words))).values()
        service = values.get("ServiceID", "")
        if not _SERVICE_ID.match(service):
            raise Unreachable("tor did not say which onion service it made; start tor again")
        return Onion(service, values.get("PrivateKey", key))

    async def del_onion(self, service_id: str) -> None:
        """DEL_ONION: end a service. Raises `Refused` when there is none of that name."""
        await self.command(f"DEL_ONION {_word(service_id)}")

    async def close(self) -> None:
        """Close the connection. An owned tor ends then."""
        self._end("the connection to tor's control port was closed; start tor again")
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _read(self) -> None:
        parser = ReplyParser()
        reason = "tor ended, or closed its control port; start it again"
        try:
            while chunk := await self._reader.read(_CHUNK):
                for reply in parser.feed(chunk):
                    self._deliver(reply)
        except (Malformed, OSError) as error:
            reason = str(error) if isinstance(error, Malformed) else reason
        finally:
            self._end(reason)
            self._writer.close()

    def _deliver(self, reply: TorReply) -> None:
        if reply.status == ASYNCHRONOUS:
            event = event_of(reply)
            for listener in list(self._listeners):
                listener.put(event)
        elif not self._waiting:
            raise Malformed("tor's control port: a reply came that nobody asked for; start tor again")
        else:
            answer = self._waiting.popleft()
            if not answer.done():  # it gave up waiting; its place in the queue is still this reply's
                answer.set_result(reply)

    def _end(self, reason: str) -> None:
        if self._ended is None:
            self._ended = reason
        while self._waiting:
            answer = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(Unreachable(self._ended))
        for listener in list(self._listeners):
            listener.end()


def _word(text: str) -> str:
    if not _WORD.match(text) or '"' in text:
        raise Refused("tor's control port: a word of a command holds a space, quote or control character; rename it")
    return text


def _refusal(line: str, reply: TorReply) -> str:
    """The reply of tor, unless it repeats a word of ours that may be a key."""
    verb, *words = line.split(" ")
    text = reply.lines[-1].text[:200]
    parts = [part for word in words for part in re.split(r"[:=,]", word) if len(part) >= 16]
    quoted = "" if any(part in text for part in parts) else f" {text}"
    return f"tor refused {verb} ({reply.status}{quoted}); correct it, or look whether this tor is older than 0.4.9"
