"""The small study that most tests run: does a high income go with age and sex? Its parts can be chosen."""

from __future__ import annotations

ONE_PACKET = 'kind = "one-packet"\nepsilon = 2.0'
SEX = """[[features]]
name = "sex"
kind = "categorical"
description = "Your sex"
query = "SELECT sex FROM person"
categories = ["Female", "Male"]
missing = "Male"
"""
AGE = """[[features]]
name = "age"
kind = "numeric"
description = "Your age"
query = "SELECT age FROM person"
range = [17, 90]
missing = "own"
{age}
"""
HEAD = """version = 1
title = "{title}"
purpose = "{purpose}"
contact = "staff@example.org"
[tables]
person = [{columns}]
[label]
name = "income"
description = "Whether you earn a lot"
query = "SELECT income FROM person"
positive = ["{positive}"]
negative = ["{negative}"]
missing = "negative"
"""


def questions(
    title: str = "Income",
    purpose: str = "To see a whole study.",
    age: str = "cuts = [30, 50]",
    answers: tuple[str, str] = ("high", "low"),
) -> str:
    """What is asked of the table person (age, sex, income). `age` is how its cuts are found, empty for a study that does
    not ask it; `answers` are income's positive and negative value."""
    columns = '"age", "sex", "income"' if age else '"sex", "income"'
    head = HEAD.format(title=title, purpose=purpose, columns=columns, positive=answers[0], negative=answers[1])
    return head + SEX + (AGE.format(age=age) if age else "")


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
    schedule = "".join(f'{name} = "{length}s"\n' for name, length in lengths.items() if length is not None)
    kept = f'[release]\nretention = "{retention}s"\n' if retention is not None else ""
    cohort = f'[cohort]\nminimum = {minimum}\nadmission = "{admission}"\n'
    return f"{questions(**asked)}[design]\n{design}\n[schedule]\n{schedule}{kept}{cohort}"
