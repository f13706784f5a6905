"""The verdict on each of the paper's sentences by our measurements, with our figures for it.

Every check raises `LookupError` or `ValueError` where what it needs was not measured.
"""

from __future__ import annotations

from itertools import pairwise
from math import exp, sqrt

from anon.ldp import build
from benchmarks.paper.errors import PEERS
from benchmarks.paper.findings import Findings, number, share
from benchmarks.paper.fitting import whole_nano

EDX = ("xuetangx", "courses")


def equal_at_two(found: Findings) -> tuple[bool, str]:
    row = found.one("figure2", m=2)
    p, q = number(row, "p"), number(row, "q")
    return abs(p + q - 1) < 1e-9, f"p = {p:.4f}, q = {q:.4f}"


def half_in_the_end(found: Findings) -> tuple[bool, str]:
    row = found.rows("figure2")[-1]
    p, q = number(row, "p"), number(row, "q")
    return p < 0.56, f"p = {p:.3f}, q = {q:.3f} at m = {row['m']}; 1/(e + 1) = {1 / (1 + exp(1)):.3f}"


def _ratio(found: Findings, m: int, epsilon: float, worse: str, better: str) -> float:
    panel = "epsilon" if m == 16 else "m"
    first, second = (
        number(found.rows("figure3", panel=panel, m=m, epsilon=epsilon, mechanism=name)[0], "eq4")
        for name in (worse, better)
    )
    return first / second


def strict(found: Findings) -> tuple[bool, str]:
    at_two = _ratio(found, 2, 1.0, "rappor", "pq")
    at_16 = _ratio(found, 16, 1.0, "rappor", "pq")
    return at_two > 1 + 1e-6, f"RAPPOR's error is {at_two:.4f} times that of (p, q) at m = 2, {at_16:.3f} at m = 16"


def only_high(found: Findings) -> tuple[bool, str]:
    low, high = _ratio(found, 16, 1.0, "rappor", "pq"), _ratio(found, 16, 4.0, "rappor", "pq")
    return low < 1.05 and high > 1.1, f"RAPPOR / (p, q) at m = 16: {low:.3f} at epsilon 1, {high:.3f} at 4"


def krr_low_m(found: Findings) -> tuple[bool, str]:
    ranges = ", ".join(f"{row['krr_up_to']} at {row['epsilon']}" for row in found.rows("crossovers"))
    limits = [number(row, "krr_up_to") for row in found.rows("crossovers")]
    grows = all(before < after for before, after in pairwise(limits))
    return grows and limits[-1] >= 100, f"k-RR has the lower error up to m = {ranges}"


def pq_optimal(found: Findings) -> tuple[bool, str]:
    krr, rappor, subset = (_ratio(found, 128, 1.0, name, "pq") for name in ("krr", "rappor", "subset"))
    told = f"at m = 128, epsilon 1, in units of (p, q)'s: k-RR {krr:.2f}, RAPPOR {rappor:.3f}, subset {subset:.3f}"
    return krr > 1 and rappor > 1, told


def mean_is_eq4(found: Findings) -> tuple[bool, str]:
    rows = found.rows("figure3", mechanism="krr", panel="m")
    shares = [(int(number(row, "m")), number(row, "mean_norm") / number(row, "eq4")) for row in rows]
    exact = [abs(number(row, "rmse") / number(row, "eq4") - 1) for row in found.rows("figure3", panel="m")]
    listed = ", ".join(f"{ratio:.3f} at m = {m}" for m, ratio in shares if m in (2, 4, 16, 128))
    return all(ratio > 0.995 for _, ratio in shares), (
        f"k-RR, measured mean / eq. 4: {listed}; measured root mean square / eq. 4 of all: 1 within {max(exact):.3f}"
    )


def printed_krr(_: Findings) -> tuple[bool, str]:
    ratios, good = [], True
    for m in (2, 4, 16):
        p = exp(1.0) / (exp(1.0) + m)
        q = (1 - p) / (m - 1)
        error = sqrt((m - 1) * q * (1 - q) + p * (1 - p)) / (p - q) / sqrt(PEERS)
        times = error / build("krr", m, whole_nano(1.0)).rmse(PEERS)
        good = good and times < 1.001
        ratios.append(f"{times:.2f} at m = {m}")
    return good, "its p would make the error larger by " + ", ".join(ratios) + " (epsilon 1)"


def competitive(found: Findings) -> tuple[bool, str]:
    parts, good = [], True
    for name in _sets(found, "figure4"):
        rows = found.rows("figure4", set=name, features="raw")
        ours = max(number(row, "auc") for row in rows if str(row["learner"]).startswith("ensemble"))
        best = max(number(row, "auc") for row in rows if not str(row["learner"]).startswith("ensemble"))
        good = good and best - ours < 0.03
        plain = number(found.one("figure4", set=name, features="raw", learner="logistic regression"), "auc")
        parts.append(f"{name} {share(ours)} against {share(plain)} and {share(best)}")
    return good, "better ensemble against logistic regression and the best learner, raw features: " + ", ".join(parts)


def binning(found: Findings) -> tuple[bool, str]:
    parts = []
    for name in _sets(found, "figure4"):
        both = []
        for kind in ("raw", "binary"):
            rows = found.rows("figure4", set=name, features=kind)
            both.append(max(number(row, "auc") for row in rows if str(row["learner"]).startswith("ensemble")))
        parts.append((name, both[0], both[1]))
    if len(parts) < 2:
        raise LookupError("too few data sets to compare")
    losses = [raw - binary for _, raw, binary in parts]
    told = ", ".join(f"{name} {share(raw)} to {share(binary)}" for name, raw, binary in parts)
    return min(losses) < 0.01 < max(losses), f"ensemble from raw to binary features: {told}"


def to_the_optimum(found: Findings) -> tuple[bool, str]:
    gaps = []
    for name in _sets(found, "figure5"):
        for partitions in (5, 20):
            top = found.auc("figure5", set=name, partitions=partitions, epsilon=None)
            gaps.append((top - found.auc("figure5", set=name, partitions=partitions, epsilon=4.0), name, partitions))
    worst = max(gaps)
    return worst[0] < 0.01, f"at epsilon_h = 4 no curve is more than {max(worst[0], 0):.3f} below its dotted line"


def reach(found: Findings, name: str, partitions: int, part: float = 0.95) -> float:
    """The epsilon_h at which AUC - 1/2 is this part of what no perturbation gives, between points on a log scale."""
    wanted = part * (found.auc("figure5", set=name, partitions=partitions, epsilon=None) - 0.5)
    rows = [row for row in found.rows("figure5", set=name, partitions=partitions) if row["epsilon"]]
    points = sorted((number(row, "epsilon"), number(row, "auc") - 0.5) for row in rows)
    for (low, before), (high, after) in pairwise(points):
        if before < wanted <= after:
            return float(low * (high / low) ** ((wanted - before) / (after - before)))
    return points[0][0] if points and points[0][1] >= wanted else float("inf")


def single_is_faster(found: Findings) -> tuple[bool, str]:
    parts, good = [], True
    names = [one for one in EDX if one in _sets(found, "figure5")]
    if not names:
        raise LookupError("no course data")
    for name in names:
        single, triple = reach(found, name, 20), reach(found, name, 5)
        good = good and single < triple
        parts.append(f"{name} at epsilon_h {single:.2f} with single features, {triple:.2f} with three")
    return good, "95 % of the gain is reached by " + ", ".join(parts)


def census_alike(found: Findings) -> tuple[bool, str]:
    gaps = []
    for epsilon in (0.5, 1.0, 2.0):
        single, triple = (found.auc("figure5", set="adult", partitions=p, epsilon=epsilon) for p in (20, 5))
        gaps.append((epsilon, single, triple))
    told = ", ".join(f"{share(t)} / {share(s)} at {e:g}" for e, s, t in gaps)
    return all(abs(s - t) < 0.01 for _, s, t in gaps), f"three / one feature per subset at epsilon_h: {told}"


def _size_curve(found: Findings, partitions: int, epsilon: float | None) -> dict[int, float]:
    rows = found.rows("figure6", partitions=partitions, epsilon=epsilon)
    return {int(number(row, "subset_size")): number(row, "auc") for row in rows}


def _peak(curve: dict[int, float]) -> int:
    return max(curve, key=lambda key: curve[key])


def peak_at_three(found: Findings) -> tuple[bool, str]:
    peaks = {epsilon: _peak(_size_curve(found, 5, epsilon)) for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0, None)}
    overall = _peak(_size_curve(found, 5, None))
    told = ", ".join(f"{size} at {'none' if eps is None else format(eps, 'g')}" for eps, size in peaks.items())
    near = ", ".join(f"{share(_size_curve(found, 5, None)[size])} at {size}" for size in (2, 3, 4, 5))
    return overall == 3, f"best subset size by epsilon_h: {told}; without perturbation {near}"


def two_at_twenty(found: Findings) -> tuple[bool, str]:
    curves = {epsilon: _size_curve(found, 20, epsilon) for epsilon in (0.25, 0.5, 1.0, 2.0)}
    told = ", ".join(f"{_peak(curve)} at {eps:g}" for eps, curve in curves.items())
    good = all(_peak(curve) == 2 for eps, curve in curves.items() if eps <= 0.5)
    return good, f"best subset size by epsilon_h: {told}"


def small_is_safe(found: Findings) -> tuple[bool, str]:
    told, good = [], True
    for partitions in (5, 20):
        curve = _size_curve(found, partitions, 0.25)
        good = good and all(curve[size] >= curve[size + 1] - 0.005 for size in sorted(curve)[:-1])
        told.append(f"{partitions} partitions: " + ", ".join(share(curve[size]) for size in sorted(curve)))
    return good, "at epsilon_h 0.25, sizes 1 to 5, " + "; ".join(told)


def usually_one(found: Findings) -> tuple[bool, str]:
    points = [(p, e) for p in (5, 20) for e in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)]
    best = [_peak(_size_curve(found, *point)) for point in points]
    ones, twos = best.count(1), best.count(2)
    return ones * 2 > len(best), f"size 1 is best at {ones} of {len(best)} points, 2 at {twos}"


def _partition_curve(found: Findings, epsilon: float | None) -> dict[int, float]:
    return {int(number(row, "partitions")): number(row, "auc") for row in found.rows("figure7", epsilon=epsilon)}


def boost(found: Findings) -> tuple[bool, str]:
    told = []
    gains = []
    for epsilon in (1.0, 2.0, None):
        curve = _partition_curve(found, epsilon)
        gains.append(max(curve.values()) - curve[1])
        name = "none" if epsilon is None else f"{epsilon:g}"
        told.append(f"{share(curve[1])} with 1 and {share(max(curve.values()))} with {_peak(curve)} at {name}")
    return min(gains) > 0.01, ", ".join(told)


def eight_to_sixteen(found: Findings) -> tuple[bool, str]:
    peaks = {epsilon: _peak(_partition_curve(found, epsilon)) for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0)}
    told = ", ".join(f"{count} at {epsilon:g}" for epsilon, count in peaks.items())
    curve = _partition_curve(found, 1.0)
    told += "; at 1: " + ", ".join(f"{share(curve[count])} with {count}" for count in (8, 16, 32))
    return all(8 <= count <= 16 for count in peaks.values()), f"best number of partitions by epsilon_h: {told}"


def _by_classifier(found: Findings, size: int, epsilon: float | None) -> tuple[float, float]:
    rows = {
        row["classifier"]: number(row, "auc")
        for row in found.rows("figure8d", partitions=5, subset_size=size, epsilon=epsilon, score="f1")
        if row["scored_on"] == "others"
    }
    return rows["logistic"], rows["tree"]


def trees(found: Findings) -> tuple[bool, str]:
    wide, noisy = _by_classifier(found, 5, 4.0), _by_classifier(found, 5, 0.5)
    narrow = _by_classifier(found, 1, 0.5)
    good = wide[1] > wide[0] and noisy[0] > noisy[1] and narrow[0] > narrow[1] - 0.002
    return good, (
        f"logistic / tree: {share(wide[0])} / {share(wide[1])} with 5 features at epsilon_h 4, {share(noisy[0])} / "
        f"{share(noisy[1])} at 0.5; with one feature at 0.5 {share(narrow[0])} / {share(narrow[1])}"
    )


def _score_auc(found: Findings, partitions: int, score: str, scored_on: str, epsilon: float | None) -> float:
    rows = found.rows(
        "figure8d", partitions=partitions, score=score, scored_on=scored_on, epsilon=epsilon, classifier="logistic",
        subset_size=3 if partitions == 5 else 1,
    )  # fmt: skip
    return number(rows[0], "auc")


def best_score(found: Findings) -> tuple[bool, str]:
    told, wins = [], 0
    for partitions in (5, 20):
        scores = {name: _score_auc(found, partitions, name, "same", 0.5) for name in ("f1", "auc", "accuracy", "none")}
        wins += scores["f1"] >= max(scores.values()) - 0.002
        listed = ", ".join(f"{score} {share(value)}" for score, value in scores.items())
        told.append(f"{partitions} partitions at epsilon_h 0.5: {listed}")
    return wins == 2, "; ".join(told)


def fold_noise(found: Findings) -> tuple[bool, str]:
    told, better = [], 0
    for partitions in (5, 20):
        same, others = (_score_auc(found, partitions, "f1", place, 0.5) for place in ("same", "others"))
        better += same >= others
        told.append(f"{partitions} partitions: {share(same)} on the same noise, {share(others)} on other reports")
    return better == 2, "AUC at epsilon_h 0.5, " + "; ".join(told)


def _sets(found: Findings, figure: str) -> list[str]:
    return list(dict.fromkeys(str(row["set"]) for row in found.rows(figure)))
