"""Write the tracking logs of an invented cohort: one JSON Lines file for each student.

    python -m examples.mooc.generate --students 500 --seed 1 --out DIR [--shuffle-labels]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path

from attrs import frozen

from examples.mooc import course, edx
from examples.mooc.behaviour import Action, act, draw_traits

OBSERVED = course.OBSERVED_WEEKS * course.WEEK


@frozen
class Student:
    """One student's own log: a file name without suffix, and the lines in order of time, without line ends."""

    name: str
    lines: tuple[str, ...]


def generate(students: int, seed: int, *, shuffle_labels: bool = False) -> Iterator[Student]:
    """The first `students` of the cohort `seed`: of an endless population, those who are still active in week 6.

    The same arguments give the same bytes, and a smaller cohort is a prefix of a larger one. With `shuffle_labels`
    every student's events after week 6 are those of another, drawn by a uniform permutation: the label (no event from
    week 10 on) is then independent of weeks 1 to 6. Identities stay; session ids and attempt counters after week 6 are
    those of the other, which no query of the study looks at.
    """
    if students < 1:
        raise ValueError(f"students must be at least 1, got {students}")
    histories: Iterable[list[Action]] = islice(_active(seed), students)
    if shuffle_labels:
        histories = _exchange_endings(list(histories), random.Random(f"mooc endings {seed}"))
    for index, actions in enumerate(histories):
        who = edx.identity(index)
        yield Student(who.username, edx.render(who, actions))


def write_cohort(out: Path, students: int, seed: int, *, shuffle_labels: bool = False) -> list[Path]:
    """Write `generate(...)` to `out` (made if absent) and return the files, `<username>.jsonl`, in order.

    Raises FileExistsError if `out` already holds a `.jsonl` file: two cohorts in one folder would be taken for one.
    """
    out.mkdir(parents=True, exist_ok=True)
    if any(out.glob("*.jsonl")):
        raise FileExistsError(f"{out} already holds .jsonl files; choose an empty folder")
    return [_write(out, student) for student in generate(students, seed, shuffle_labels=shuffle_labels)]


def _active(seed: int) -> Iterator[list[Action]]:
    for number in count():
        rng = random.Random(f"mooc student {seed} {number}")
        actions = act(draw_traits(rng), rng)
        if any(OBSERVED - course.WEEK <= action.second < OBSERVED for action in actions):
            yield actions


def _exchange_endings(histories: list[list[Action]], rng: random.Random) -> Iterator[list[Action]]:
    order = list(range(len(histories)))
    rng.shuffle(order)
    for own, other in zip(histories, order, strict=True):
        beginning = [action for action in own if action.second < OBSERVED]
        yield beginning + [action for action in histories[other] if action.second >= OBSERVED]


def _write(out: Path, student: Student) -> Path:
    path = out / f"{student.name}.jsonl"
    path.write_text("".join(line + "\n" for line in student.lines), encoding="utf-8")
    return path


def main() -> None:
    """Read the command line and write the cohort."""
    parser = argparse.ArgumentParser(prog="python -m examples.mooc.generate", description=__doc__.partition("\n")[0])
    parser.add_argument("--students", type=int, default=500, help="how many, all active in week 6")
    parser.add_argument("--seed", type=int, default=1, help="another seed is another cohort")
    parser.add_argument("--out", type=Path, required=True, help="folder for one .jsonl file each")
    parser.add_argument("--shuffle-labels", action="store_true", help="give everyone another's events after week 6")
    asked = parser.parse_args()
    files = write_cohort(asked.out, asked.students, asked.seed, shuffle_labels=asked.shuffle_labels)
    print(f"{len(files)} logs in {asked.out}, {sum(file.stat().st_size for file in files) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
