"""Public documents that staff give to everybody with a study: a taxonomy, or rows that anybody may see.

A study file names the file of each (`GivenFile`), and the manifest its digest and length (`GivenDocument`). Its bytes
are a document of the study, published with the manifest: everybody reads the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from anon.crypto import labels
from anon.errors import InvalidValue, Malformed, because
from anon.study.features import demand_line
from anon.values import frozen
from anon.wire.cbor import sha256

MOST_GIVEN = 8
LONGEST_GIVEN = 2**20
"""Bytes of one."""
NONE_GIVEN: Final[Mapping[str, bytes]] = MappingProxyType({})
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")


def _demand_named(name: str, description: str) -> None:
    if not _NAME.match(name):
        raise InvalidValue("name: expected small letters, digits and underscores (at most 40), beginning with a letter")
    demand_line("description", description)
    if not description.strip():
        raise InvalidValue("description: expected some text; people read it before they say yes")


@frozen
class GivenFile:
    """A public document in a study file. `file`: its path, from the study file's folder."""

    name: str
    description: str
    file: str

    def __attrs_post_init__(self) -> None:
        _demand_named(self.name, self.description)
        if not self.file.strip():
            raise InvalidValue("file: expected the path of the file that everybody is given")


@frozen
class GivenDocument:
    """A public document in a manifest: the digest that its signed head has (32 bytes), and its length in bytes."""

    name: str
    description: str
    digest: bytes
    length: int

    def __attrs_post_init__(self) -> None:
        _demand_named(self.name, self.description)
        if len(self.digest) != 32 or not 1 <= self.length <= LONGEST_GIVEN:
            raise InvalidValue(f"given: expected a digest of 32 bytes, and 1 to {LONGEST_GIVEN} bytes of content")


def demand_given(given: Sequence[GivenFile | GivenDocument]) -> None:
    """Raises `InvalidValue` for too many documents, and for two of one name."""
    if len(given) > MOST_GIVEN or len({document.name for document in given}) != len(given):
        raise InvalidValue(f"given: expected at most {MOST_GIVEN} documents of different names")


def read_given(files: Sequence[GivenFile], folder: Path) -> dict[str, bytes]:
    """The contents by name, at most one byte more than may be, from files below this folder.

    Raises `Malformed` for one that cannot be read, and for one elsewhere: a study file may be a stranger's, and its
    files are published.
    """
    return {named.name: _content(folder.resolve(), named) for named in files}


def _content(folder: Path, named: GivenFile) -> bytes:
    where = folder / named.file.replace("\0", "")  # no path has a zero byte
    try:
        if where.resolve().is_relative_to(folder) and where.is_file():
            with where.open("rb") as stream:
                return stream.read(LONGEST_GIVEN + 1)
        why = ""
    except OSError as error:
        why = because(error)
    raise Malformed(
        f"study.toml: given.{named.name}: expected a file below the study file's folder{why}; copy it there and name it"
    )


def resolved(files: Sequence[GivenFile], contents: Mapping[str, bytes]) -> tuple[GivenDocument, ...]:
    """The documents as a manifest names them. Raises `Malformed` for one without content, or with too much."""
    found = []
    for named in files:
        content = contents.get(named.name, b"")
        if not 1 <= len(content) <= LONGEST_GIVEN:
            raise Malformed(
                f"study.toml: given.{named.name}: expected a content of 1 to {LONGEST_GIVEN} bytes; shorten it, or "
                "publish the study by `anonml study publish FILE`, which reads it"
            )
        found.append(GivenDocument(named.name, named.description, sha256(labels.HEAD, content), len(content)))
    return tuple(found)
