"""The checks of a demo's figures, before a sentence of success may be said. Each study of a demo is checked alike.

1. Everybody enrolled: as many as there are peers, by the signed roster and by the peers' own stores.
2. Every packet left, was accepted, and was found again by its sender. None was refused.
3. No ledger spent more than the study's price.
4. A model was published, and whoever checks the publication finds nothing wrong with it.
5. Through Tor each connection that carried a packet had a circuit of its own, and the log could have shown otherwise.
6. Of parties with many records: the exact sum is a model that ranks about as well as a party alone, or better. The
   published sum is as far from it as the declared noise puts it. Of trees their counts are wrong by as much as those of
   trees that are grown again.
7. The control is a whole study of as many people, and the numbers of both are numbers.

Of a study that ended without a report one thing alone is told: why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from attrs import frozen

Figures = Mapping[str, Any]
CONTROL, UNPUBLISHED = "control", "unpublished"
_ROUNDING = 1e-6
WORSE = 0.1
"""AUC. In 145 simulated divisions of the census, among 6 to 200 parties, the sum without noise ranked at most .0012
worse; .1 is more than six standard deviations from every mean."""


@frozen
class Check:
    """A condition on the figures of one study, and the sentence that says what did not hold."""

    holds: Callable[[Figures], bool]
    said: Callable[[Figures], str]


def faults(figures: Figures, scored: bool = True) -> list[str]:
    """All that does not hold, in sentences; none of a demo that did what it should. A missing figure is a fault.

    `scored`: the model was tried on others, too.
    """
    found = list(_of_study(figures, "", scored))
    if CONTROL in figures:
        found += _of_study(figures[CONTROL], "the control: ", scored)
        if figures[CONTROL].get("peers") != figures.get("peers"):
            found.append("the control: it had another number of people than the study")
    return found


def _of_study(figures: Figures, whose: str, scored: bool) -> Iterator[str]:
    if UNPUBLISHED in figures:
        yield f"{whose}the study ended without a report: {figures[UNPUBLISHED]}"
        return
    of_model = _PARTY_CHECKS if "records" in figures else _MODEL_CHECKS
    if "trees" in figures:
        of_model = _TREES_CHECKS
    checks = (*_CHECKS, *(of_model if scored else ()), *(_TOR_CHECKS if "packet_circuits" in figures else ()))
    for check in checks:
        try:
            if not check.holds(figures):
                yield whose + check.said(figures)
        except (KeyError, TypeError, ValueError) as missing:
            yield f"{whose}a figure is missing or no number: {missing}"


def _numbers(figures: Figures) -> bool:
    scores = [figures[name] for name in ("auc", "auc_ceiling_binned", "auc_ceiling_raw")]
    return isinstance(figures["shown"], bool) and _shares(scores)


def _shares(scores: Iterable[float]) -> bool:
    return all(isfinite(score) and 0 <= score <= 1 for score in scores)


def _in_band(figures: Figures) -> bool:
    least, most = figures["distance_band"]
    return bool(least <= figures["distance"] <= most)


_CHECKS = (
    Check(lambda figures: figures["peers"] > 0, lambda _: "nobody was there to take part"),
    Check(
        lambda figures: figures["enrolled"] == figures["joined"] == figures["peers"],
        lambda figures: f"{figures['enrolled']:,} of {figures['peers']:,} people are in the signed roster, and "
        f"{figures['joined']:,} know that they are",
    ),
    Check(
        lambda figures: figures["missed"] == 0 and figures["sent"] == figures["peers"] * figures["packets"],
        lambda figures: f"{figures['missed']:,} packets never left",
    ),
    Check(
        lambda figures: figures["accepted"] == figures["sent"] and figures["lost"] == 0,
        lambda figures: f"{figures['sent']:,} packets were sent, and {figures['accepted']:,} are in the transcripts",
    ),
    Check(
        lambda figures: figures["included"] == figures["sent"],
        lambda figures: f"{figures['included']:,} of {figures['sent']:,} packets were found again by their senders",
    ),
    Check(
        lambda figures: not any(figures["refused"].values()),
        lambda figures: f"the aggregator refused packets: {dict(figures['refused'])}",
    ),
    Check(
        lambda figures: 0 < figures["most_spent"] <= figures["epsilon_record"] + _ROUNDING,
        lambda figures: f"a ledger spent {figures['most_spent']:g}, and the study's price is "
        f"{figures['epsilon_record']:g}",
    ),
    Check(
        lambda figures: figures["audited"] is True, lambda _: "the audit of what was published did not end well"
    ),
)
_NO_MODEL = "no model was published, or its scores are no numbers"
_MODEL_CHECKS = (Check(_numbers, lambda _: _NO_MODEL),)
_SCORES = Check(
    lambda figures: len(figures["models"]) > 1 and all(map(_shares, figures["models"].values())), lambda _: _NO_MODEL
)
_PARTY_CHECKS = (
    _SCORES,
    Check(
        lambda figures: figures["models"]["without noise"][1] > figures["models"]["one party alone"][1] - WORSE,
        lambda _: "without its noise the sum ranks worse than a party alone",
    ),
    Check(
        _in_band,
        lambda figures: f"the published sum is {figures['distance']:g} times as far from the exact one as the declared "
        f"noise on average; expected {figures['distance_band'][0]:g} to {figures['distance_band'][1]:g}",
    ),
)
_TREES_CHECKS = (
    _SCORES,
    Check(
        lambda figures: figures["trees"] == figures["peers"] and figures["rows"] > 0,
        lambda figures: f"{figures['rows']:,} rows were drawn from {figures['trees']:,} trees",
    ),
    Check(
        _in_band,
        lambda figures: f"counts of the published trees are wrong by {figures['distance']:g} times as much as those of "
        f"trees grown again; expected {figures['distance_band'][0]:g} to {figures['distance_band'][1]:g}",
    ),
)
_TOR_CHECKS = (
    Check(
        lambda figures: figures["sent"] <= figures["packet_connections"] == figures["packet_circuits"],
        lambda figures: f"tor's log shows {figures['packet_circuits']:,} circuits for "
        f"{figures['packet_connections']:,} connections that carried packets",
    ),
    Check(
        lambda figures: figures["control_requests"] > 1 and figures["control_circuits"] == 1,
        lambda _: "tor's log could not have shown a shared circuit: its own control shows none",
    ),
)
