"""SQLite files that name one part of themselves again and again (SQLite file format, sections 1.6 and 2)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

PAGE = 4096
_INTERIOR_TABLE, _INTERIOR_INDEX, _LEAF_TABLE = 5, 2, 13
_HEADER = 100


def one_leaf_again_and_again(file: Path, levels: int = 6, padding: int = 100) -> None:
    """A table whose interior pages each name one page below them, hundreds of times: 500 ** levels rows and more."""
    _made(file, "CREATE TABLE person (age, cups)", [(number % 90, "some") for number in range(40)])
    _deepened(file, levels, _INTERIOR_TABLE, b"\x01")
    _padded(file, padding)


def one_leaf_of_an_index(file: Path, levels: int = 6) -> None:
    """The same for a table WITHOUT ROWID, which is an index; each cell of an interior page is a row too."""
    _made(file, "CREATE TABLE person (age PRIMARY KEY, cups) WITHOUT ROWID", [(n, "some") for n in range(40)])
    _deepened(file, levels, _INTERIOR_INDEX, b"\x08\x03\x01\x15\x07some")


def many_tables_of_one_page(file: Path, tables: int = 200) -> None:
    """Tables that all have one and the same root page."""
    _made(file, "CREATE TABLE person (age, cups)", [(number % 90, "some") for number in range(200)])
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        for number in range(tables):
            listed = (f"t{number}", f"t{number}", f"CREATE TABLE t{number} (age, cups)")
            connection.execute("INSERT INTO sqlite_master VALUES ('table', ?, ?, 2, ?)", listed)


def one_long_text_again_and_again(file: Path, rows: int = 60_000, text: int = 900_000) -> None:
    """Short rows, each with a column that was added later and whose default is long: no row holds it."""
    _made(file, "CREATE TABLE person (age)", [(number % 90,) for number in range(rows)])
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(f"ALTER TABLE person ADD COLUMN cups TEXT DEFAULT '{'x' * text}'")


def a_list_of_tables_without_end(file: Path, levels: int = 6) -> None:
    """The list of tables itself names one page again and again; it is read before anything is asked of the file."""
    _made(file, "CREATE TABLE person (age UNIQUE, cups)", [(number, "some") for number in range(40)])
    pages = _pages(file)
    first = pages[0]
    cells = [_cell(first, _HEADER, number) for number in range(2)]
    index = next(cell for cell in cells if b"autoindex" in cell)
    pages.append(_leaf([index]))
    for _level in range(levels - 1):
        pages.append(_interior(len(pages), 0, _INTERIOR_TABLE, b"\x01"))
    head = _interior(len(pages), _HEADER, _INTERIOR_TABLE, b"\x01")
    pages[0] = first[:_HEADER] + head[_HEADER:]
    _write(file, pages)


def with_names_of_bytes(file: Path, name: bytes) -> None:
    """A table beside a plain one, whose eight-letter name is these eight bytes."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE good (age)")
        connection.execute("INSERT INTO good VALUES (30)")
        connection.execute("CREATE TABLE eightlet (age)")
        connection.execute("INSERT INTO eightlet VALUES (30)")
    file.write_bytes(file.read_bytes().replace(b"eightlet", name))


def _made(file: Path, table: str, rows: list[tuple[object, ...]]) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size={PAGE}")
        connection.execute(table)
        marks = ", ".join("?" * len(rows[0]))
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO person VALUES ({marks})", rows)
        connection.execute("COMMIT")


def _deepened(file: Path, levels: int, kind: int, after_child: bytes) -> None:
    pages = _pages(file)
    root = len(pages) - 1
    pages.append(pages[root])
    for _level in range(levels - 1):
        pages.append(_interior(len(pages), 0, kind, after_child))
    pages[root] = _interior(len(pages), 0, kind, after_child)
    _write(file, pages)


def _interior(child: int, begins: int, kind: int, after_child: bytes) -> bytes:
    """A page full of cells that all name one child."""
    cell = child.to_bytes(4, "big") + after_child
    count = (PAGE - begins - 12) // (len(cell) + 2)
    places = [PAGE - (number + 1) * len(cell) for number in range(count)]
    header = bytes([kind]) + bytes(2) + count.to_bytes(2, "big") + places[-1].to_bytes(2, "big") + bytes(1)
    page = bytes(begins) + header + child.to_bytes(4, "big") + b"".join(one.to_bytes(2, "big") for one in places)
    return page + bytes(PAGE - len(page) - count * len(cell)) + cell * count


def _leaf(cells: list[bytes]) -> bytes:
    places, end = [], PAGE
    for cell in cells:
        end -= len(cell)
        places.append(end)
    header = bytes([_LEAF_TABLE]) + bytes(2) + len(cells).to_bytes(2, "big") + end.to_bytes(2, "big") + bytes(1)
    page = header + b"".join(one.to_bytes(2, "big") for one in places)
    return page + bytes(end - len(page)) + b"".join(reversed(cells))


def _cell(page: bytes, begins: int, number: int) -> bytes:
    """A cell of a leaf whose payload is shorter than 128 bytes."""
    place = int.from_bytes(page[begins + 8 + 2 * number : begins + 10 + 2 * number], "big")
    return page[place : place + 2 + page[place]]


def _pages(file: Path) -> list[bytes]:
    content = file.read_bytes()
    return [content[place : place + PAGE] for place in range(0, len(content), PAGE)]


def _padded(file: Path, pages: int) -> None:
    _write(file, _pages(file) + [bytes(PAGE)] * pages)


def _write(file: Path, pages: list[bytes]) -> None:
    """The pages, with their number in the header and in the place that says that it is up to date."""
    first = pages[0]
    counted = first[:28] + len(pages).to_bytes(4, "big") + first[32:]
    file.write_bytes(b"".join([counted[:92] + counted[24:28] + counted[96:], *pages[1:]]))
