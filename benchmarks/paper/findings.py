"""Looking results up, and writing them as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from benchmarks.figures import Figure

Value = str | int | float | bool | None


@frozen
class Findings:
    """All rows by figure."""

    by_figure: Mapping[str, Sequence[Figure]]

    def rows(self, figure: str, **having: Value) -> list[Figure]:
        """The rows of a figure in which every named column has the given value; none is an empty list."""
        return [
            row
            for row in self.by_figure.get(figure, ())
            if all(row.get(name) == value for name, value in having.items())
        ]

    def one(self, figure: str, **having: Value) -> Figure:
        """The only such row. Raises `LookupError` unless there is one."""
        found = self.rows(figure, **having)
        if len(found) != 1:
            raise LookupError(f"{figure}: expected one row with {having}, found {len(found)}")
        return found[0]

    def auc(self, figure: str, **having: Value) -> float:
        """The ROC AUC of the only such row."""
        return number(self.one(figure, **having), "auc")


def number(row: Figure, key: str) -> float:
    """A cell that holds a number. Raises `LookupError` for any other."""
    value = row.get(key)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise LookupError(f"expected a number in {key}")


def table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


def share(value: float, digits: int = 3) -> str:
    """0.8431 as .843, as AUCs are written in tables."""
    return f"{value:.{digits}f}"


def with_error(row: Figure, key: str = "auc") -> str:
    """A mean and its standard error."""
    error = row.get(f"{key}_se")
    return share(number(row, key)) + ("" if not isinstance(error, float) else f" ± {error:.4f}")
