"""How a student of the example behaves: a small generative model, one seeded student at a time.

Four traits, all in units of standard deviations over the population, decide what a student does and whether they stay:
commitment and momentum set how often they come (and how that changes from week to week), ability how often they answer
correctly, regularity when they come. Leaving after week 6 is drawn from the traits, not from the events, so events tell
about it without deciding it. Nothing here describes real students.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from attrs import define, field, frozen

from examples.mooc import course

# Risk of leaving between weeks 7 and 9, on the logit scale: RISK_BASE - RISK_SLOPE * (weighted traits).
RISK_BASE = -0.3
RISK_SLOPE = 2.2
RISK_WEIGHTS = {"commitment": 1.0, "momentum": 0.3, "ability": 0.4, "regularity": 0.4}

TASTE = 0.35
"""Spread of the tastes, on the logarithmic scale."""

EARLY_LEAVING = 0.04
"""Weekly risk of leaving in weeks 1 to 6 at average commitment."""


@frozen
class Traits:
    """A student's traits; standard normals, ability and regularity each correlated 0.9 with commitment.

    The tastes, independent of all else and of staying, are how much of each activity a sitting holds (1 = average).
    """

    commitment: float
    momentum: float
    ability: float
    regularity: float
    favourite_hour: float
    watching: float
    solving: float
    browsing: float
    writing: float

    def engagement(self, week: int) -> float:
        """How keen the student is in a week (counted from 1), in standard deviations."""
        return self.commitment + 0.25 * self.momentum * (week - 3.5)


@frozen
class Action:
    """One thing done: seconds since the course began, number of the session, kind, and what it was done to."""

    second: float
    session: int
    kind: str
    target: str = ""
    attempt: int = 0
    correct: bool = False
    position: float = 0.0


@define
class _Progress:
    """A student's state from one session to the next."""

    sessions: int = 0
    attempts: dict[str, int] = field(factory=dict)
    solved: set[str] = field(factory=set)


def draw_traits(rng: random.Random) -> Traits:
    """One student of the population."""
    commitment = rng.gauss(0, 1)
    return Traits(
        commitment=commitment,
        momentum=rng.gauss(0, 1),
        ability=0.9 * commitment + 0.436 * rng.gauss(0, 1),
        regularity=0.9 * commitment + 0.436 * rng.gauss(0, 1),
        favourite_hour=rng.uniform(10, 20),
        watching=rng.lognormvariate(0, TASTE),
        solving=rng.lognormvariate(0, TASTE),
        browsing=rng.lognormvariate(0, TASTE),
        writing=rng.lognormvariate(0, TASTE),
    )


def act(traits: Traits, rng: random.Random) -> list[Action]:
    """Everything the student does during the course, in order of time."""
    leaves_at = _leaving_time(traits, rng)
    progress = _Progress()
    actions = [
        action
        for week in range(1, course.WEEKS + 1)
        for start in _session_starts(traits, week, rng)
        if start < leaves_at
        for action in _session(traits, week, start, progress, rng)
    ]
    return sorted(actions, key=lambda action: action.second)


def _leaving_time(traits: Traits, rng: random.Random) -> float:
    """Seconds since the course began after which the student never comes back; infinity if they stay."""
    for week in range(course.OBSERVED_WEEKS):
        if rng.random() < EARLY_LEAVING * math.exp(-0.7 * traits.commitment):
            return (week + rng.random()) * course.WEEK
    protection = sum(weight * getattr(traits, name) for name, weight in RISK_WEIGHTS.items())
    if rng.random() < _logistic(RISK_BASE - RISK_SLOPE * protection):
        return rng.uniform(course.OBSERVED_WEEKS, course.DROPOUT_WEEK - 1) * course.WEEK
    return math.inf


def _session_starts(traits: Traits, week: int, rng: random.Random) -> list[float]:
    """When the sessions of a week begin. Irregular students come late in the week and at any hour."""
    starts = []
    for _ in range(min(8, _poisson(math.exp(0.65 + 0.4 * traits.engagement(week)), rng))):
        spread = rng.random() < _logistic(0.5 + traits.regularity)
        day = rng.randrange(7) if spread else 5 + rng.randrange(2)
        hour = min(22.5, max(0.0, rng.gauss(traits.favourite_hour, 1.8 * math.exp(-0.55 * traits.regularity))))
        starts.append((week - 1) * course.WEEK + day * course.DAY + hour * 3600)
    return sorted(starts)


def _session(traits: Traits, week: int, start: float, progress: _Progress, rng: random.Random) -> Iterator[Action]:
    """One sitting: look around, watch, solve, perhaps write in the forum, close the page."""
    progress.sessions += 1
    number, keen, now = progress.sessions, traits.engagement(week), start
    yield Action(now, number, "courseware", f"week{week:02}")
    for _ in range(_poisson(1.2 * traits.browsing * math.exp(0.3 * keen), rng)):
        now += rng.expovariate(1 / 40)
        kind = "seq_next" if rng.random() < 0.7 else "seq_goto"
        yield Action(now, number, kind, f"week{week:02}", position=float(rng.randrange(1, 8)))
    for _ in range(_poisson(0.7 * traits.watching * math.exp(0.25 * keen), rng)):
        for action in _watch(week, now, number, rng):
            now = action.second
            yield action
    for problem in _chosen_problems(traits, week, progress, rng):
        for action in _solve(traits, problem, now, progress, rng):
            now = action.second
            yield action
    if rng.random() < 0.22 * traits.writing * math.exp(0.5 * keen):
        now += rng.expovariate(1 / 150)
        kind = rng.choice(("thread", "response", "comment", "comment", "search"))
        yield Action(now, number, kind, f"{rng.getrandbits(96):024x}")
    if rng.random() < 0.8:
        yield Action(now + rng.expovariate(1 / 30), number, "page_close", f"week{week:02}")


def _watch(week: int, now: float, session: int, rng: random.Random) -> Iterator[Action]:
    """Play one video of the week, perhaps pausing or seeking on the way."""
    video, position = f"w{week:02}v{rng.randrange(1, course.VIDEOS_PER_WEEK + 1)}", 0.0
    now += rng.expovariate(1 / 30)
    yield Action(now, session, "play_video", video)
    for kind, chance in (("pause_video", 0.4), ("seek_video", 0.25), ("stop_video", 0.6)):
        if rng.random() < chance:
            watched = rng.expovariate(1 / 180)
            now, position = now + watched, position + watched
            yield Action(now, session, kind, video, position=position)


def _chosen_problems(traits: Traits, week: int, progress: _Progress, rng: random.Random) -> list[str]:
    """Unfinished problems the student returns to, then new ones of this and the previous week."""
    pending = [name for name in progress.attempts if name not in progress.solved and progress.attempts[name] < 4]
    returned = [name for name in pending if rng.random() < 0.6]
    released = [
        course.problem_name(past, number)
        for past in range(max(1, week - 1), week + 1)
        for number in range(1, course.PROBLEMS_PER_WEEK + 1)
    ]
    fresh = [name for name in released if name not in progress.attempts]
    tried = _poisson(1.4 * traits.solving * math.exp(0.25 * traits.engagement(week)), rng)
    return returned + fresh[:tried]


def _solve(traits: Traits, problem: str, now: float, progress: _Progress, rng: random.Random) -> Iterator[Action]:
    """Submit until it is right, the student stops for today, or four attempts are used; some then see the answer."""
    session, difficulty = progress.sessions, (int(problem[-1]) - 3.5) / 3
    while progress.attempts.get(problem, 0) < 4:
        now += 60 * rng.lognormvariate(0.7 - 0.2 * traits.ability, 0.7)
        attempt = progress.attempts[problem] = progress.attempts.get(problem, 0) + 1
        correct = rng.random() < _logistic(0.2 + 1.3 * traits.ability - difficulty)
        yield Action(now, session, "check", problem, attempt=attempt, correct=correct)
        if correct:
            progress.solved.add(problem)
            return
        if rng.random() < _logistic(-0.3 - 0.8 * traits.ability):
            return
    if rng.random() < 0.5:
        yield Action(now + rng.expovariate(1 / 20), session, "show_answer", problem)


def _poisson(mean: float, rng: random.Random) -> int:
    """Knuth's product method; means here are below ten."""
    limit, count, product = math.exp(-mean), 0, rng.random()
    while product > limit:
        count, product = count + 1, product * rng.random()
    return count


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))
