"""A published sum with the noise that is known to be in it."""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen

from anon.errors import Malformed


@frozen
class NoisySum:
    """The integers that everybody can add up from the parties' noisy shares.

    `units`: how many contributions are in it, as the signed list says. `sigma_squared`: of the discrete Gaussian noise
    that each of `parties` added to every entry. Raises `Malformed` without a unit or a party.
    """

    values: tuple[int, ...]
    units: int
    sigma_squared: Fraction
    parties: int

    def __attrs_post_init__(self) -> None:
        if self.units < 1 or self.parties < 1 or self.sigma_squared <= 0:
            raise Malformed("sum: expected at least one contribution, one party, and noise of each")

    @property
    def variance(self) -> Fraction:
        """Of the noise on each entry, at most: all parties' together."""
        return self.sigma_squared * self.parties
