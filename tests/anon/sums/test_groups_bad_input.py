"""Averaging in groups with bad input: sums that nobody was asked for, values that fit nothing, records of one label."""

from __future__ import annotations

from math import inf, nan

import pytest

from aggregator.protocols.sum.groups import group_sums
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.outgoing import OpenShares
from anon.protocols.sum.groups.drawing import KEYS, OPENED, SHARED, SHARES, TOLD, spelled, survey_of, told
from anon.protocols.sum.groups.layout import weights_of, weights_survey
from anon.protocols.sum.vector import vector_of
from tests.support.groups_study import HELD, MEMBERS
from tests.support.groups_table import Table
from tests.support.oblivious_table import record


def test_a_group_that_liars_announce_has_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """All who are no receivers tell a sum, as if they were: each group's is that of its drawn receivers alone."""
    monkeypatch.setattr(DiscreteGaussian, "vector", lambda _self, length, _random: [0] * length)
    right = Table().play()
    receivers = {right.tags.index(tag) for group in right.groups(0) for tag in group.receivers}

    def announced(member: int, survey: int, made: OpenShares) -> OpenShares:
        lies = survey == survey_of(0, TOLD) and member not in receivers
        return OpenShares(spelled([7] * 3), ()) if lies else made

    table = Table(says=announced).play()
    texts = table.pages()[survey_of(0, TOLD)].texts(survey_of(0, TOLD))
    assert sum(text == spelled([7] * 3) for text in texts.values()) == MEMBERS - len(receivers) > 0
    assert table.groups(0) == right.groups(0)
    assert [told(table.pages(), group) for group in table.groups(0)] == [
        told(right.pages(), group) for group in right.groups(0)
    ]


def test_shares_of_a_member_of_no_group_are_in_no_sum() -> None:
    """One that opened nothing says that it sent shares, and writes some: they have no reader."""

    def outside(member: int, survey: int, made: OpenShares) -> OpenShares | None:
        if member == 3 and survey == survey_of(0, OPENED):
            return OpenShares(bytes(32), ())
        if member == 3 and survey == survey_of(0, SHARES):
            return OpenShares(SHARED, (spelled([9] * 3),) * 2)
        return made

    table = Table(says=outside).play()
    tag = table.tags[3]
    assert all(tag not in group.members for group in table.groups(0))
    assert not any((survey_of(0, SHARES), tag) in mail for mail in table.mail.values())
    assert all(found.model is not None for found in group_sums(table.study, table.documents))


@pytest.mark.parametrize("honest", [1, 3])
def test_a_pool_full_of_inventions_draws_no_group(honest: int) -> None:
    """All but a few open values that fit no commitment of theirs: too few are left, the study ends, and nobody pays."""

    def invented(member: int, survey: int, made: OpenShares) -> OpenShares:
        opens = survey != KEYS and (survey - 1) % 3 == OPENED
        return OpenShares(bytes([member]) * 32, ()) if opens and member >= honest else made

    table = Table(says=invented).play()
    assert table.groups(0) == () and table.ended == survey_of(0, OPENED) and table.mail == {}


@pytest.mark.parametrize("label", [0, 1])
def test_a_member_with_one_label_alone_sends_weights_like_any_other(label: int) -> None:
    """Its model says that label of every record, lies in the ball, and its group has a model."""
    one_label = tuple((*row[:-1], label) for row in HELD[0])
    table = Table(held=(one_label, *HELD[1:])).play()
    shape = weights_of(weights_survey(table.study))
    vector = vector_of(table.study, weights_survey(table.study), record(one_label))
    assert (vector[0] > 0) == bool(label) and sum(entry**2 for entry in vector) <= shape.contribution_norm_squared
    assert all(found.model is not None for found in group_sums(table.study, table.documents))


STRANGE = tuple((day, value, value, value) for day, value in enumerate([None, "text", inf, nan, -1e300, "", 10**400]))


@pytest.mark.parametrize("held", [(), STRANGE, (*STRANGE, *HELD[0])], ids=["none", "strange", "some strange"])
def test_a_member_without_records_or_with_values_outside_the_declared_sends_shares_like_any_other(
    held: tuple[tuple[object, ...], ...],
) -> None:
    """Its weights lie in the ball, each packet of it is as long as the others', and its group has a model."""
    table = Table(held=(held, *HELD[1:])).play()
    shape = weights_of(weights_survey(table.study))
    vector = vector_of(table.study, weights_survey(table.study), record(held))
    assert sum(entry**2 for entry in vector) <= shape.contribution_norm_squared
    letters = {len(letter) for mail in table.mail.values() for letter in mail.values()}
    assert len(letters) == 1 and all(found.model is not None for found in group_sums(table.study, table.documents))
    (group,) = [one for one in table.groups(0) if table.tags[0] in one.members]
    assert len(told(table.pages(), group) or ()) == len(vector)
