"""The form of a feature query: one SELECT over declared tables, calling permitted functions, within stated bounds.

`lint` finds every fault that does not depend on data, so that a study is refused before anyone enrols. It compiles the
query against an empty database in memory that has the declared tables; nobody's data is needed or touched. The same
`QueryGuard` then stands over the connection that evaluates the query on a peer. There the declared tables are seen
through temporary views of exactly the declared columns. A peer's other tables and columns can neither be read nor
change the meaning of a name.

A query is a SQLite statement and its only parameter is `:as_of`, the study's instant in whole seconds since 1970 UTC.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from anon.errors import Malformed, Refused
from anon.queries.functions import BUILT_IN, LONGEST_PATTERN, OWN, PERMITTED, describe, register
from anon.text.foreign import Quoted
from anon.text.sentences import Ours, Sentence, Term, say

__all__ = ["BOUNDS", "BUILT_IN", "OWN", "PERMITTED", "Bounds", "Exhausted", "QueryGuard", "describe", "lint"]

Tables = Mapping[str, Sequence[str]]
"""Declared tables: name to the columns that queries read."""

NAME = re.compile(r"(?!sqlite_|pragma_)[a-z][a-z0-9_]{0,62}")
"""A table's or column's name, as the importer writes it and a study declares it."""


class Bounds(NamedTuple):
    """The limits of one query. The step count, not a clock, ends a query: the same data always ends the same way."""

    steps: int = 20_000_000
    """SQLite virtual machine instructions, and the like in our own functions."""
    bytes_of_memory: int = 256 * 2**20
    """Growth of the process while a query runs; a last resort, measured and not deterministic."""
    bytes_of_value: int = 256 * 2**10
    """One text or one row."""
    bytes_of_query: int = 8 * 2**10
    columns: int = 256
    depth: int = 100
    """Of an expression."""
    compound: int = 16
    """SELECTs joined by UNION and the like."""
    program: int = 50_000
    """Instructions in a compiled query."""
    arguments: int = 16
    expansions: int = 16_384
    """Copies of common table expressions: n of them, each naming the one before twice, compile to 2**n."""
    checks: int = 100_000
    """Questions the compiler may ask the authorizer."""


BOUNDS = Bounds()


class Exhausted(Exception):
    """A query has used its steps. Never leaves the connection it runs on."""


class QueryGuard:
    """Stands over one connection: what may be read and called, and how much work a query may do.

    Make it when the connection's temporary views are in place (`see`); from then on the connection can only read.
    """

    INTERVAL = 250
    """Instructions between two looks at the budget."""
    UNLOOKED = 20_000
    """Units of work in our own functions between two looks at clock and memory: some milliseconds."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        tables: Tables,
        bounds: Bounds = BOUNDS,
        over_memory: Callable[[], bool] = lambda: False,
    ) -> None:
        self._connection = connection
        self._bounds = bounds
        self._over_memory = over_memory
        self._columns = {name.lower(): {column.lower() for column in columns} for name, columns in tables.items()}
        self._others = _names_of_others(connection)
        self.denied: Sentence | None = None
        """Why the authorizer refused what was compiled last, for a person to read; None if it did not."""
        self._lifted = False
        self.begin()
        _limit(connection, bounds)
        register(connection, self.charge, bounds.bytes_of_value)
        connection.set_progress_handler(self._tick, self.INTERVAL)
        connection.set_authorizer(self._authorize)

    def begin(self) -> None:
        """Start a query with a full budget."""
        self.spent = 0
        self._unlooked = 0
        self._asked = 0
        self.denied = None

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Let the program itself write between two queries. Never while one of them is compiled or run."""
        self._lifted = True
        before = self._connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, self._bounds.columns)
        try:
            yield
        finally:
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, before)
            self._lifted = False

    def charge(self, units: int) -> None:
        """Take work from the budget; raises `Exhausted` when it is spent."""
        self.spent += units
        self._unlooked += units
        if self.spent > self._bounds.steps:
            raise Exhausted
        if self._unlooked >= self.UNLOOKED:
            self._unlooked = 0
            if self._over_memory():
                raise Exhausted

    def _tick(self) -> bool:
        if self._lifted:
            return False
        self.spent += self.INTERVAL
        # A progress handler that says true interrupts the statement (sqlite3_progress_handler).
        return self.spent > self._bounds.steps or self._over_memory()

    def _authorize(self, action: int, first: str | None, second: str | None, *_where: str | None) -> int:
        if self._lifted:
            return sqlite3.SQLITE_OK
        self._asked += 1
        reason = (
            say("a query this intricate") if self._asked > self._bounds.checks else self._forbids(action, first, second)
        )
        if reason is None:
            return sqlite3.SQLITE_OK
        self.denied = self.denied or reason
        return sqlite3.SQLITE_DENY

    def _forbids(self, action: int, first: str | None, second: str | None) -> Sentence | None:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return None
        if action == sqlite3.SQLITE_FUNCTION:
            return None if second in PERMITTED else say("function {name}()", name=Quoted(second or ""))
        if action == sqlite3.SQLITE_READ:
            return (
                None
                if self._readable(first or "", second or "")
                else say("reading {place}", place=Quoted(f"{first}.{second or '*'}"))
            )
        return say("anything but one SELECT")

    def _readable(self, table: str, column: str) -> bool:
        """An empty column asks for a table of which only rows are counted; it may be a common table expression."""
        name = table.lower()
        if column:
            return column.lower() in self._columns.get(name, ())
        return name in self._columns or not (name in self._others or name.startswith(("sqlite_", "pragma_")))


def see(connection: sqlite3.Connection, tables: Tables) -> None:
    """Make temporary views that show exactly the declared columns of the main database's tables."""
    for table, columns in tables.items():
        listed = ", ".join(f'"{column}"' for column in columns)
        connection.execute(f'CREATE TEMP VIEW "{table}" AS SELECT {listed} FROM main."{table}"')


def _names_of_others(connection: sqlite3.Connection) -> frozenset[str]:
    """Every table-like name here, in lower case: tables, views and SQLite's table-valued functions."""
    rows = connection.execute("SELECT name FROM sqlite_master UNION SELECT name FROM pragma_module_list")
    return frozenset(str(name).lower() for (name,) in rows)


def _limit(connection: sqlite3.Connection, bounds: Bounds) -> None:
    for category, value in (
        (sqlite3.SQLITE_LIMIT_LENGTH, bounds.bytes_of_value),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 2 * bounds.bytes_of_query),
        (sqlite3.SQLITE_LIMIT_COLUMN, bounds.columns),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, bounds.depth),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, bounds.compound),
        (sqlite3.SQLITE_LIMIT_VDBE_OP, bounds.program),
        (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, bounds.arguments),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LONGEST_PATTERN),
        (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 8),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):
        connection.setlimit(category, value)


_QUERY: Final = Term("query")


def lint(query: str, tables: Tables, what: Ours = _QUERY, bounds: Bounds = BOUNDS, many: bool = False) -> None:
    """Find every fault of `query` that does not depend on data; return if there is none. `many`: it gives the key and
    the value of many records, else one value.

    Raises `Refused` for what is forbidden (statement, function, table, too intricate) and `Malformed` for text that
    does not compile against `tables`. Messages begin with `what` and may quote the query, which is the study's.

    >>> lint("SELECT max(cups) FROM coffee", {"coffee": ["day", "cups"]})
    >>> lint("SELECT cups FROM diary", {"coffee": ["day", "cups"]})
    Traceback (most recent call last):
    anon.errors.Malformed: query: reads the table “diary”, which is not there
    >>> lint("SELECT random() FROM coffee", {"coffee": ["day", "cups"]})
    Traceback (most recent call last):
    anon.errors.Refused: query: function “random”() is not permitted; permitted are SELECT over declared columns ...
    """
    _check_tables(tables, what)
    text = statement(query)
    if len(text.encode("utf-8", "replace")) > bounds.bytes_of_query:
        raise Refused(
            say(
                "{what}: longer than {bytes_of_query} bytes; shorten it",
                what=what,
                bytes_of_query=bounds.bytes_of_query,
            )
        )
    tokens = _tokens(text)
    if not tokens or tokens[0] not in ("select", "with", "values"):
        raise Refused(say("{what}: only one SELECT is permitted; begin with SELECT or WITH", what=what))
    if _expansions(tokens) > bounds.expansions:
        raise Refused(
            say("{what}: common table expressions that name each other too often; name each fewer times", what=what)
        )
    _compile(text, tables, what, bounds, many)


def statement(query: str) -> str:
    """The query without the semicolon that may end it."""
    return query.strip().rstrip(";").rstrip()


def _check_tables(tables: Tables, what: Ours) -> None:
    for table, columns in tables.items():
        for name in (table, *columns):
            if not NAME.fullmatch(name):
                raise Malformed(
                    say(
                        "{what}: {name} is no table or column name; use a-z, 0-9 and _, a letter first",
                        what=what,
                        name=Quoted(name),
                    )
                )
        if not columns or len(set(columns)) != len(columns):
            named = Quoted(table)
            raise Malformed(say("{what}: table {table} needs its columns declared, each once", what=what, table=named))


def _compile(text: str, tables: Tables, what: Ours, bounds: Bounds, many: bool) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for table, columns in tables.items():
            connection.execute(f'CREATE TABLE "{table}" ({", ".join(f"{chr(34)}{name}{chr(34)}" for name in columns)})')
        see(connection, tables)
        guard = QueryGuard(connection, tables, bounds)
        # The second form holds only a query of one column, or two; its parentheses alone would let `1) + (2` through.
        fitting = "= (1, 1)" if many else "IS NULL"
        # EXPLAIN compiles a statement, and runs nothing of it.
        for explained in (f"EXPLAIN {text}", f"EXPLAIN SELECT 1 WHERE (\n{text}\n) {fitting}"):
            _explain(connection, guard, explained, what)
    finally:
        connection.close()


def _explain(connection: sqlite3.Connection, guard: QueryGuard, explained: str, what: Ours) -> None:
    guard.begin()
    try:
        connection.execute(explained, {"as_of": 0}).fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError, RecursionError) as error:
        raise _fault(error, guard.denied, what) from None


_LACKS = re.compile(r"no such (?P<kind>table|column): (?P<name>\S+)")


def _fault(error: Exception, denied: Sentence | None, what: Ours) -> Exception:
    reason = str(error)
    if denied is not None or reason.startswith(("no such function", "cannot modify")):
        return Refused(
            say(
                "{what}: {statement} is not permitted; permitted are SELECT over declared columns and the functions "
                "listed by `describe()`",
                what=what,
                statement=denied or Quoted(reason),
            )
        )
    if "one statement" in reason:
        return Refused(say("{what}: more than one statement; keep one SELECT", what=what))
    if "binding" in reason.lower():
        return Malformed(say("{what}: the only parameter is :as_of; got another", what=what))
    if "row value misused" in reason:
        return Malformed(say("{what}: expected two columns, the key of a record and its value", what=what))
    if found := _LACKS.match(reason):
        name = Quoted(found["name"])
        if found["kind"] == "table":
            return Malformed(say("{what}: reads the table {name}, which is not there", what=what, name=name))
        return Malformed(say("{what}: reads the column {name}, which is not there", what=what, name=name))
    why = Quoted(reason, 200) if reason else say("it is too long or too deep")
    return Malformed(say("{what}: does not compile against the declared tables: {why}", what=what, why=why))


_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|\s+|(?P<token>"(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`|\[[^\]]*\]|[\w$]+|.)""",
    re.DOTALL | re.ASCII,
)
_WORD = re.compile(r"[\w$]+", re.ASCII)
_KEYWORDS = ("as", "not", "materialized")


def _tokens(text: str) -> list[str]:
    """The query's words and signs in lower case, comments left out; a quoted name equals the same name unquoted."""
    tokens = (match["token"] for match in _TOKEN.finditer(text))
    return [_plain(token.lower()) for token in tokens if token]


def _plain(token: str) -> str:
    if len(token) == 1 or token[0] not in "\"'`[":
        return token
    name = token[1:-1]
    # Quoted text is never a keyword or a sign, so it must not look like one.
    return name if _WORD.fullmatch(name) and name not in _KEYWORDS else f'"{name}'


def _expansions(tokens: list[str]) -> int:
    """An upper bound on the copies of common table expressions that compiling makes.

    Each mention of one copies its body, mentions inside it included, so the copies are at most the product over the
    definitions of their mentions. R mentions shared by k definitions of one name give at most (R/k)**k.
    """
    definitions = Counter(_defined(tokens))
    mentions = Counter(_unqualified(tokens))
    product = 1.0
    for name, most in definitions.items():
        shared = mentions[name] - 1
        product = min(1e12, product * max(1.0, *((shared / count) ** count for count in range(1, min(most, 64) + 1))))
    return int(product)


def _unqualified(tokens: list[str]) -> Iterator[str]:
    """Tokens with no dot beside them: `a.ts` mentions a column, `main.a` a table that is no common expression."""
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if "." not in (before, after):
            yield token


def _defined(tokens: list[str]) -> Iterator[str]:
    """Names before `AS (`, with or without a list of columns between."""
    for index, word in enumerate(tokens):
        following = [later for later in tokens[index + 1 : index + 4] if later not in _KEYWORDS]
        if word != "as" or not index or following[:1] != ["("]:
            continue
        before = index - 1
        if tokens[before] == ")":
            while before > 0 and tokens[before] != "(":
                before -= 1
            before -= 1
        if before >= 0:
            yield tokens[before]
