"""Study files of the tests, written from their parts. Most tests run `income_study`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

ONE_PACKET = 'kind = "one-packet"\nepsilon = 2.0'


def head_of(
    title: str,
    purpose: str,
    columns: Sequence[str],
    label: str,
    features: Sequence[str],
    contact: str = "staff@example.org",
) -> str:
    """The first part of a study file: its title and what it asks. `columns` are the table person's; `label` and
    `features` come from the functions below."""
    titled = _table("", version=1, title=title, purpose=purpose, contact=contact)
    return titled + _table("[tables]", person=list(columns)) + label + "".join(features)


def study(
    head: str, design: str, schedule: Mapping[str, str], cohort: str, learning: str = "", release: str = ""
) -> str:
    """A whole study file: `head`, and the other parts as lines of TOML."""
    parts = {
        "design": design,
        "learning": learning,
        "schedule": _table("", **schedule),
        "release": release,
        "cohort": cohort,
    }
    return head + "".join(f"[{name}]\n{lines.rstrip()}\n" for name, lines in parts.items() if lines)


def label_of(
    name: str, positive: object, negative: object, description: str | None = None, *, query: str | None = None
) -> str:
    """The label; a value of its own, or a list of several. A missing value is negative."""
    values = {"positive": _listed(positive), "negative": _listed(negative), "missing": "negative"}
    return _table("[label]", **_named(name, description or f"You are {name}.", query), **values)


def numeric(
    name: str,
    limits: tuple[int, int],
    cuts: str,
    missing: object = "own",
    description: str | None = None,
    *,
    query: str | None = None,
) -> str:
    """A numeric feature; `cuts` is the line that says how its cuts are found."""
    named = _named(name, description or f"Your {name}.", query, "numeric")
    return _table("[[features]]", **named, range=list(limits)) + f"{cuts}\n" + _table("", missing=missing)


def categorical(
    name: str,
    categories: Sequence[str],
    missing: str = "own",
    description: str | None = None,
    *,
    query: str | None = None,
) -> str:
    """A categorical feature."""
    named = _named(name, description or f"Your {name}.", query, "categorical")
    return _table("[[features]]", **named, categories=list(categories), missing=missing)


def _named(name: str, description: str, query: str | None, kind: str | None = None) -> dict[str, object]:
    kinds = {"kind": kind} if kind else {}
    return {"name": name, **kinds, "description": description, "query": query or f"SELECT {name} FROM person"}


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _table(header: str, **values: object) -> str:
    """Lines of TOML. JSON spells strings, numbers and lists as TOML does."""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "".join(f"{line}\n" for line in [*([header] if header else []), *lines])


def questions(
    title: str = "Income",
    purpose: str = "To see a whole study.",
    age: str = "cuts = [30, 50]",
    answers: tuple[str, str] = ("high", "low"),
) -> str:
    """The questions to the table person (age, sex, income): does a high income go with age and sex? `age` is how its
    cuts are found, empty for a study that does not ask it; `answers` are income's positive and negative value."""
    columns = ["age", "sex", "income"] if age else ["sex", "income"]
    features = [categorical("sex", ["Female", "Male"], "Male", "Your sex")]
    features += [numeric("age", (17, 90), age, description="Your age")] if age else []
    return head_of(title, purpose, columns, label_of("income", *answers, "Whether you earn a lot"), features)


def income_study(
    design: str = ONE_PACKET,
    *,
    enrol: float = 1000,
    settle: float = 40,
    collect: float = 80,
    binning: float | None = None,
    margin: float | None = None,
    retention: float | None = None,
    minimum: int = 3,
    admission: str = "invite",
    **asked: str,
) -> str:
    """A whole study file; lengths in seconds. `asked` goes to `questions`."""
    lengths = {"enrol": enrol, "settle": settle, "binning": binning, "collect": collect, "margin": margin}
    schedule = {name: f"{length}s" for name, length in lengths.items() if length is not None}
    kept = f'retention = "{retention}s"' if retention is not None else ""
    cohort = f'minimum = {minimum}\nadmission = "{admission}"'
    return study(questions(**asked), design, schedule, cohort, release=kept)


def course_of_three(title: str) -> str:
    """A study of age and income for three invited people; `format` fills in the lengths of its windows."""
    return study(
        head_of(
            title,
            "To see a whole study.",
            ["age", "income"],
            label_of("income", "high", "low", "Whether you earn a lot"),
            [numeric("age", (17, 90), "cuts = [30, 50]", description="Your age")],
        ),
        ONE_PACKET,
        {"enrol": "{enrol}s", "settle": "{settle}s", "collect": "{collect}s"},
        'minimum = 3\nadmission = "invite"',
    )
