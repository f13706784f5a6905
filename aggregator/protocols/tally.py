"""Counting perturbed reports: for each category, how many of them support it.

Unary reports are counted without unpacking them. Blocks of reports are added as bit planes. Two blocks and a total of
one weight become a new total and a block of twice the weight. So a bit of a report costs a few instructions on whole
words (carry-save adders). All of it happens in a few buffers that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import Factory, define, field
from numpy.typing import NDArray

from anon.errors import Malformed
from anon.ldp.krr import REPORT_SIZE, RandomResponse
from anon.ldp.mechanism import Mechanism, PerturbedReport
from anon.ldp.subset import SubsetSelection
from anon.study.manifest import Survey

Packed = NDArray[np.uint8]
"""Reports as rows of bytes, shape (n, report_size), C-contiguous for speed."""

Counts = NDArray[np.int64]
"""One count for each category, shape (m,)."""

Tally = NDArray[np.int64]
"""The integers that a protocol counts in packets of one survey, of a shape of its own. Parts add up to all."""

_Planes = list[list[Packed]]  # at index w, at most two blocks whose bits count 2**w each

_BLOCK_BYTES = 2**16  # the four blocks of one addition fit the second-level cache


def tally(mechanism: Mechanism, reports: Sequence[PerturbedReport] | bytes) -> Counts:
    """Return what `mechanism.tally` returns, fast, for parsed reports or their bytes laid end to end.

    Raises `Malformed` where `mechanism.parse` would refuse one of the reports.

    >>> from anon.ldp import build, nano
    >>> subset = build("subset", 4, nano("0.1"))
    >>> tally(subset, [subset.parse(bytes([0b1100_0000])), subset.parse(bytes([0b0110_0000]))]).tolist()
    [1, 2, 1, 0]
    """
    joined = reports if isinstance(reports, bytes) else b"".join([report.data for report in reports])
    if len(joined) % mechanism.report_size or not _whole(mechanism, reports):
        raise Malformed(f"every {mechanism.name} report here has {mechanism.report_size} bytes: parse reports first")
    packed = np.frombuffer(joined, dtype=np.uint8).reshape(-1, mechanism.report_size)
    if isinstance(mechanism, RandomResponse):
        return tally_krr(packed, mechanism.m)
    counts = tally_unary(packed, mechanism.m)
    if isinstance(mechanism, SubsetSelection):
        check_sizes(packed, mechanism.w)
    return counts


def tallied(survey: Survey, reports: Sequence[bytes]) -> Tally:
    """How many reports there are, and then how many of them support each category; shape (1 + m,).

    Raises `Malformed` for a report that the survey's mechanism does not make.
    """
    mechanism = survey.build()
    counts = tally(mechanism, [mechanism.parse(report) for report in reports])
    return np.concatenate([np.array([len(reports)], dtype=np.int64), counts])


def check_sizes(packed: Packed, w: int) -> None:
    """Raise `Malformed` unless each of the (n, bytes) reports of subset selection has w bits set."""
    if (np.bitwise_count(packed).sum(axis=1, dtype=np.int64) != w).any():
        raise Malformed(f"a subset report names {w} categories: parse reports before counting them")


def tally_krr(packed: Packed, m: int) -> Counts:
    """Return how many of the (n, 2) big-endian categories are 0..m-1. Raises `Malformed` if one is m or above."""
    _check_shape(packed, REPORT_SIZE)
    categories = np.ascontiguousarray(packed).view(">u2").ravel()
    counts = np.bincount(categories, minlength=m)
    if len(counts) > m:
        raise Malformed(f"a krr report names a category below {m}: parse reports before counting them")
    return counts.astype(np.int64)


def tally_unary(packed: Packed, m: int) -> Counts:
    """Return how many of the (n, ceil(m / 8)) reports set bit 0..m-1, the first being the top bit of byte 0.

    Raises `Malformed` if a bit after the first m is set.
    """
    _check_shape(packed, (m + 7) // 8)
    sums = _count_bits(packed)
    if sums[m:].any():
        raise Malformed(f"the bits after the first {m} of a report must be zero: parse reports before counting them")
    return sums[:m]


def _whole(mechanism: Mechanism, reports: Sequence[PerturbedReport] | bytes) -> bool:
    return isinstance(reports, bytes) or all(len(report.data) == mechanism.report_size for report in reports)


def _check_shape(packed: Packed, width: int) -> None:
    if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != width:
        raise ValueError(f"expected bytes of shape (n, {width}), got {packed.dtype} of shape {packed.shape}")


def _count_bits(packed: Packed) -> Counts:
    rows = _block_rows(packed.shape)
    planes = _Adder((rows, packed.shape[1])).added(_blocks(packed, rows))
    while rows > 8:
        rows //= 2
        planes = _halved(planes, rows)
    sums = np.zeros(8 * packed.shape[1], dtype=np.int64)
    for weight, pending in enumerate(planes):
        for block in pending:
            sums += np.unpackbits(block, axis=1).sum(axis=0, dtype=np.int64) << weight
    return sums


def _block_rows(shape: tuple[int, ...]) -> int:
    most = max(_BLOCK_BYTES // shape[1], 8)
    return 1 << (min(most, max(shape[0], 1)).bit_length() - 1)


def _blocks(packed: Packed, rows: int) -> Iterator[Packed]:
    whole = len(packed) - len(packed) % rows
    for start in range(0, whole, rows):
        yield packed[start : start + rows]
    if whole < len(packed):
        last = np.zeros((rows, packed.shape[1]), dtype=np.uint8)
        last[: len(packed) - whole] = packed[whole:]
        yield last


@define
class _Level:
    """The blocks of one weight: their total, and room for two carries from it, of which one may be waiting."""

    total: Packed
    carries: tuple[Packed, Packed]
    waiting: bool = False


@define
class _Adder:
    """Adds blocks of one shape, two at a time, without taking memory for each: only a new weight takes some."""

    shape: tuple[int, int]
    _levels: list[_Level] = field(init=False, factory=list)
    _scratch: Packed = field(init=False, default=Factory(lambda self: self._empty(), takes_self=True))

    def added(self, blocks: Iterator[Packed]) -> _Planes:
        """Add all blocks, which are only read; return what they sum to."""
        nothing = np.zeros(self.shape, dtype=np.uint8)
        for first in blocks:
            self._add(0, first, next(blocks, nothing))
        planes: _Planes = [[level.total] for level in self._levels] + [[]]
        for weight, level in enumerate(self._levels):
            planes[weight + 1] += level.carries[: level.waiting]
        return planes

    def _add(self, weight: int, first: Packed, second: Packed) -> None:
        """A full adder of two blocks and the total of their weight; every second carry is added in turn."""
        if weight == len(self._levels):
            self._levels.append(_Level(np.zeros(self.shape, dtype=np.uint8), (self._empty(), self._empty())))
        level, scratch = self._levels[weight], self._scratch
        carry = level.carries[level.waiting]
        np.bitwise_xor(first, second, out=scratch)
        np.bitwise_and(scratch, level.total, out=carry)
        np.bitwise_xor(level.total, scratch, out=level.total)
        np.bitwise_and(first, second, out=scratch)
        np.bitwise_or(carry, scratch, out=carry)
        level.waiting = not level.waiting
        if not level.waiting:
            self._add(weight + 1, *level.carries)

    def _empty(self) -> Packed:
        return np.empty(self.shape, dtype=np.uint8)


def _add(planes: _Planes, weight: int, block: Packed) -> None:
    """Add a block to planes: with two already at its weight, a full adder makes one of them and a carry."""
    if weight == len(planes):
        planes.append([])
    planes[weight].append(block)
    if len(planes[weight]) == 3:
        first, second, third = planes[weight]
        either = first ^ second
        planes[weight] = [either ^ third]
        _add(planes, weight + 1, (first & second) | (either & third))


def _halved(planes: _Planes, rows: int) -> _Planes:
    halved: _Planes = []
    for weight, pending in enumerate(planes):
        while len(halved) <= weight:
            halved.append([])
        for block in pending:
            _add(halved, weight, block[:rows])
            _add(halved, weight, block[rows:])
    return halved
