"""Pages that members wrote: whether they let a study go on, and the results that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from attrs import frozen

from aggregator.protocols.contract import EndingPart, part_of
from aggregator.protocols.installed import PROTOCOLS
from anon.credential import token_size
from anon.crypto.nacl import SigningKey
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.errors import Malformed
from anon.protocols.board import page_of
from anon.protocols.contract import Place
from anon.protocols.registry import protocol_of
from anon.protocols.resolve import StudyKeys, resolve
from anon.study.manifest import Manifest
from anon.wire.cbor import decode, encode
from benchmarks.vectors.learned import cases_of, demand_alike, many_records, public_rows_of
from benchmarks.vectors.made import Case, Kind, Stream, flipped
from benchmarks.vectors.study import PUBLISHED, frame
from benchmarks.vectors.writing import FilledPackets, author_of, board_of

_MANY = "strength = 0.1"


@frozen
class WrittenStudy:
    """A study to be written: its design, how many members, and which of them are silent from which round on."""

    design: str
    members: int = 4
    silent: Mapping[int, int] = {}
    many: bool = False
    cohort: str = "minimum = 3\nmaximum = 5"


_TREES: Final = 'kind = "trees"\nepsilon = 8.0\ndepth = 2\nrows = 12'
_GROUPS: Final = f'kind = "group-averaging"\nepsilon = 1.0\n{_MANY}\naggregations = 1\ngroup = 3\nreceivers = 2'
STUDIES: Final = {
    "trees": WrittenStudy(_TREES, many=True),
    "trees of a target": WrittenStudy(f'{_TREES}\ntarget = "age"', many=True, silent={1: 0}),
    "deep trees": WrittenStudy(_TREES.replace("depth = 2", "depth = 4").replace("12", "40"), many=True),
    "masks": WrittenStudy('kind = "masked-moments"\nepsilon = 1.0', members=5),
    "masks, one away": WrittenStudy('kind = "masked-moments"\nepsilon = 1.0', members=5, silent={3: 2}),
    "masks of weights": WrittenStudy(f'kind = "masked-averaging"\nepsilon = 1.0\n{_MANY}', many=True),
    "masks of votes": WrittenStudy('kind = "masked-transfer"\nepsilon = 2.0\npublic_rows = 12'),
    "groups": WrittenStudy(_GROUPS, members=7, silent={2: 0}, many=True, cohort="minimum = 6\nmaximum = 7"),
    "parties": WrittenStudy(
        f'kind = "oblivious-averaging"\nepsilon = 1.0\n{_MANY}\nkey_bits = 512', members=3, many=True
    ),
}


def kinds() -> list[Kind]:
    """All of this module."""
    return [_boards(), _learned()]


@lru_cache(maxsize=16)
def written(name: str) -> tuple[Manifest, dict[Place, bytes], bytes]:
    """A study's manifest, its whole board, and its public rows."""
    asked, drawn = STUDIES[name], Stream(f"pages {name}")
    keys = StudyKeys(bytes(SigningKey(drawn(32)).verify_key), drawn(PUBLIC_KEY_SIZE), drawn(96), drawn(32))
    text = frame(f"[design]\n{asked.design}\n", tellers=False)
    text = text.replace("minimum = 2\nmaximum = 1000", asked.cohort)
    text = many_records(text) if asked.many else text
    given = dict[str, bytes]()
    if "transfer" in asked.design:
        text, given = public_rows_of(text, drawn)
    study = resolve(PROTOCOLS.proposal(text), keys, PUBLISHED, drawn.below, given=given)
    tags = tuple(sorted(drawn(48) for _ in range(asked.members)))
    packets = FilledPackets(study, drawn, token_size(study.packets), tags)
    board = board_of(study, asked.members, author_of(study, tags, drawn, asked.silent), packets, drawn)
    return study, board, given.get("rows", b"")


def _asked(board: Mapping[Place, bytes]) -> dict[str, Any]:
    """Pages and seats as a case has them."""
    pages, seats = ([body for (kind, _), body in board.items() if kind == one] for one in ("page", "seat"))
    return {"pages": pages} | ({"seats": seats} if seats else {})


# Boards that were changed

Board = dict[Place, bytes]


def _texts(survey: int, change: Callable[[int, bytes], bytes | None]) -> Callable[[Manifest, Board], Board]:
    """The board with other texts of a survey. `change` takes a member's place; None takes its packet away."""

    def apply(study: Manifest, board: Board) -> Board:
        place = page_of(study.survey(survey).round)
        *heading, packets = decode(board[place])
        made, at = list[bytes](), -1
        for packet in packets:
            fields = decode(packet)
            at += fields[4] == survey
            text, letters = decode(fields[5])
            other = change(at, text) if fields[4] == survey else text
            if other is not None:
                made.append(encode([*fields[:5], encode([other, letters]), *fields[6:]]))
        return board | {place: encode([*heading, made])}

    return apply


def _of(places: Sequence[int], change: Callable[[bytes], bytes | None]) -> Callable[[int, bytes], bytes | None]:
    return lambda at, text: change(text) if at in places else text


def _seat(number: int, change: Callable[[bytes], bytes]) -> Callable[[Manifest, Board], Board]:
    return lambda _study, board: board | {("seat", number): change(board["seat", number])}


def _gone(_text: bytes) -> None:
    return None


def _zeros(text: bytes) -> bytes:
    return bytes(len(text))


def _first_share(text: bytes) -> bytes:
    return flipped(text, 5)


def _summed_byte(text: bytes) -> bytes:
    return flipped(text, 40)


def _longer(text: bytes) -> bytes:
    return text + b"-"


def _last_byte(text: bytes) -> bytes:
    return flipped(text)


_Change = Callable[[Manifest, Board], Board]
_OTHER_RESULT: Final[Sequence[tuple[str, str, _Change, str]]] = (
    ("trees", "a tree fewer", _texts(0, _of([1], _gone)), "rows are drawn from all trees"),
    ("trees", "a text that is no tree", _texts(0, _of([0], _last_byte)), "rows are drawn from the page as it is"),
    ("masks", "another vector", _texts(2, _of([0], _last_byte)), "members said the digests of the pages before"),
    ("masks", "two lies in an opening", _texts(4, _of([1, 3], _first_share)), "the shares do not tell the secret"),
    ("masks", "other digests", _texts(3, _of([0, 2], _last_byte)), "members said another digest"),
    ("groups", "another sum of a receiver", _texts(3, lambda at, text: flipped(text, -2, 64) if any(text) else text),
     "a group's sum is that of its receivers"),
    ("groups", "another value", _texts(1, _of([0], _last_byte)), "a value fits its commitment"),
    ("groups", "a member that sent shares", _texts(2, lambda at, text: b"\1"), "a sum is of those who sent shares"),
    ("parties", "another sum of a party", _texts(7, _of([2], _summed_byte)), "the sum is that of all texts"),
    ("parties", "another sum of the seat", _seat(6, _last_byte), "the seat's sum is a part of it"),
    ("parties", "no party's sum", _texts(7, _of([1], _gone)), "every party told a sum"),
)  # fmt: skip
"""Of a study, boards that give another result, or none."""
_SAME_RESULT: Final[Sequence[tuple[str, str, _Change]]] = (
    ("masks", "one lie in an opening", _texts(4, _of([1], _first_share))),
    ("masks", "a member that opened nothing", _texts(4, _of([3], _gone))),
)
_ENDED: Final[Sequence[tuple[str, str, _Change, str]]] = (
    ("trees", "no tree", _texts(0, lambda at, text: flipped(text)), "one text is a tree"),
    ("masks", "two keys", _texts(0, _of([0, 1], _gone)), "as many told keys as are needed"),
    ("masks", "two that shared", _texts(1, _of([0, 1], _gone)), "as many shared as are needed"),
    ("masks", "two vectors", _texts(2, _of([0, 1], _gone)), "as many vectors came as are needed"),
    ("masks", "two digests", _texts(3, _of([0, 2], _last_byte)), "as many said the digest as are needed"),
    ("masks", "two lies in an opening", _texts(4, _of([1, 3], _first_share)), "the shares tell each secret"),
    ("groups", "two keys", _texts(0, _of(range(5), _gone)), "as many told keys as a group has"),
    ("groups", "two values", _texts(1, _of(range(5), _last_byte)), "a pool is as large as a group"),
    ("groups", "no sums", _texts(3, lambda at, text: _zeros(text)), "some group has a sum"),
    ("groups", "sums too long", _texts(3, lambda at, text: b"\x20" + text[1:]), "a sum is no longer than it can be"),
    ("groups", "no shares", _texts(2, lambda at, text: b"\0"), "half of a group sent shares"),
    ("parties", "two parties", _texts(0, _of([0], _gone)), "as many parties as the minimum"),
    ("parties", "an even modulus", _texts(1, _of([0], _last_byte)), "a modulus is odd, and of its length"),
    ("parties", "no shares", _texts(2, _of([1], _zeros)), "every party sent shares"),
    ("parties", "a post fewer", _texts(3, _of([1], _gone)), "as many posts as parties"),
    ("parties", "no ciphertext", _texts(4, _of([1], _zeros)), "a ciphertext has no factor of the modulus"),
    ("parties", "a point that is none", _texts(5, _of([1], lambda text: flipped(text, 0, 128))), "replies are points"),
    ("parties", "no noise", _texts(6, _of([2], _zeros)), "every party sent noise"),
    ("parties", "a sum of zeros", _texts(7, _of([2], _zeros)), "every party told a sum"),
    ("parties", "a silent seat", _seat(3, lambda _: b"\0"), "the seat answered"),
)
_MALFORMED: Final[Sequence[tuple[str, str, _Change, str]]] = (
    ("trees", "a text of another length", _texts(0, _of([0], _longer)), "a text has the survey's length"),
    ("trees", "packets out of order", lambda study, board: _turned(board, page_of(0)), "packets are sorted by tag"),
    ("masks", "a page of another round", lambda study, board: board | {page_of(3): board[page_of(4)]},
     "a page is of its round"),
)  # fmt: skip


def _turned(board: Board, place: Place) -> Board:
    *heading, packets = decode(board[place])
    return board | {place: encode([*heading, packets[::-1]])}


# Files


def _boards() -> Kind:
    cases: list[Case] = []
    shared: dict[str, Any] = {}
    for name in ("trees", "masks", "masks, one away", "groups", "parties"):
        study, board, _ = written(name)
        shared[f"manifest {name}"] = study.to_bytes()
        cases.append(Case(name, {"manifest": f"@manifest {name}", **_shared(shared, name, board)}))
    for name, what, change, why in (*_ENDED, *_MALFORMED):
        study, board, _ = written(name)
        asked = _shared(shared, name, change(study, dict(board)))
        cases.append(Case(f"{name}, {what}", {"manifest": f"@manifest {name}", **asked}, why))
    about = "The pages of a study whose members write, and what the aggregator's seat said after some of them. A case "
    about += "holds if all of them are well formed, and none is one with which the study ends."
    return Kind("boards", about, tuple(cases), shared)


def _shared(shared: dict[str, Any], name: str, board: Mapping[Place, bytes]) -> dict[str, Any]:
    """The case's pages and seats. Those of the honest board are shared."""
    honest = written(name)[1]
    for (kind, part), body in honest.items():
        shared[f"{kind} {part} of {name}"] = body
    named = {
        (kind, part): f"@{kind} {part} of {name}" if honest[kind, part] == body else body
        for (kind, part), body in board.items()
    }
    return _asked(named)  # type: ignore[arg-type]


def _learned() -> Kind:
    cases: list[Case] = []
    shared: dict[str, Any] = {}
    asked: dict[str, dict[str, Any]] = {}
    results: dict[str, str] = {}
    for name in STUDIES:
        study, board, given = written(name)
        shared[f"manifest {name}"] = study.to_bytes()
        asked[name] = {"manifest": f"@manifest {name}"} | ({"given": given} if given else {})
        found = cases_of(name, asked[name] | _shared(shared, name, board), written_result(study, board, given))
        results[name] = str(found[0].given["result"])
        cases += found
    for name, what, change, why in (*((*same, "") for same in _SAME_RESULT), *_OTHER_RESULT):
        study, board, _ = written(name)
        told = asked[name] | _shared(shared, name, change(study, dict(board))) | {"result": results[name]}
        cases.append(Case(f"{name}, {what}", told, why))
    about = "A result and the pages and seats' documents that it follows from. Public rows where votes are on some."
    return Kind("learned-pages", about, tuple(cases), shared)


# The verdict of this program


def documents_of(study: Manifest, pages: Sequence[bytes], seats: Sequence[bytes]) -> dict[Place, bytes]:
    """The documents of rounds by their places."""
    found, left = dict[Place, bytes](), list(seats)
    for number, (asked, body) in enumerate(zip(protocol_of(study).rounds(study), pages, strict=True)):
        found[page_of(number)] = body
        if asked.seat is not None:
            found[asked.seat] = left.pop(0)
    return found


def demand_going_on(study: Manifest, documents: Mapping[Place, bytes]) -> None:
    """Raises `Malformed` for pages that end the study."""
    part = part_of(study)
    if not isinstance(part, EndingPart):
        raise Malformed("no members write")
    known = dict[Place, bytes]()
    for number, asked in enumerate(protocol_of(study).rounds(study)):
        known[page_of(number)] = documents[page_of(number)]
        known |= {asked.seat: documents[asked.seat]} if asked.seat is not None else {}
        if part.ends(study, number, known):
            raise Malformed(f"too few wrote in round {number}")


def written_result(study: Manifest, documents: Mapping[Place, bytes], given: bytes) -> str:
    """The result of these pages, spelled. Raises `Malformed`."""
    public: dict[Place, bytes] = {("given", 0): given} if given else {}
    (body,) = part_of(study).learn(study, {**public, **documents}, {}).results.values()
    return body.decode()


def demand_written(study: Manifest, documents: Mapping[Place, bytes], given: bytes, result: str) -> None:
    """Raises `Malformed` for a result that these pages do not give."""
    demand_alike(result, written_result(study, documents, given))
