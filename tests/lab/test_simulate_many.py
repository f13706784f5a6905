"""Studies of many records are not simulated, and say so before anything is computed."""

from __future__ import annotations

import pytest

from aggregator.lab.simulation.people import people_from_rows
from anon.errors import Malformed
from tests.support.protocols import parse_proposal
from tests.support.sums import MOMENTS, manifest_of, many, sum_study


def test_people_of_many_records_are_not_simulated() -> None:
    study = parse_proposal(sum_study(MOMENTS, keys=many()))
    for one in (study, manifest_of(MOMENTS, keys=many())):
        with pytest.raises(Malformed, match="leave records out"):
            people_from_rows(one, [{"age": 1, "sleep": 2, "cups": 3, "tired": 1, "day": 1}])
