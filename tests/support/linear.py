"""Two linear models: one of a class, one of a number."""

from __future__ import annotations

from math import log

from attrs import evolve

from anon.protocols.models.linear import LinearModel
from anon.protocols.vectors.columns import Column
from anon.study.features import Feature, Label


def _numeric(name: str, highest: float) -> Feature:
    return Feature(
        name, "numeric", f"Your {name}.", f"SELECT {name} FROM person", "own", range=(0.0, highest), cuts=(1.0,)
    )


CLASS = LinearModel(
    study="ab" * 32,
    title="Who is tired",
    label=Label("tired", "You are tired.", "SELECT tired FROM person", (1,), (0,), "negative"),
    features=(_numeric("age", 100.0), _numeric("cups", 9.0)),
    columns=(Column("age", 40.0, 40.0), Column("cups", 2.0, 2.0, 5)),
    weights=(1.5, -2.0),
    intercept=0.25,
)
LOG = evolve(
    CLASS,
    columns=(CLASS.columns[0], Column("cups", log(3.0), log(3.0), 5, "log")),
    target=Column("sleep", log(5.0), log(2.0), scale="log"),
)
"""Two of cups are the centre, none and eight the ends; the sleep from 1.5 to 9."""
NUMBER = evolve(CLASS, target=Column("sleep", 7.0, 3.0))
