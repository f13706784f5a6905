"""docs/parties.md and its picture, from the rows that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from benchmarks.figures import Figure
from benchmarks.paper.findings import Findings, number, table
from benchmarks.paper.sections import merged
from benchmarks.parties import averaging, closing, modes, network
from benchmarks.parties.goals import NOISE_NAMES, Goal, brief, chosen, of_activity, of_averaging, of_transfer
from benchmarks.parties.picture import Line, chart
from benchmarks.parties.texts import ACTIVITY, ADDRESSES, AVERAGING, CHOOSING, HEAD, TRANSFER

COMMAND = "python -m benchmarks.parties --data FOLDER"
PICTURE = "parties-figure2.svg"
CHOICE = "## When to choose which"
HEADINGS = {
    "averaging": [AVERAGING.splitlines()[0]], "transfer": [TRANSFER.splitlines()[0]],
    "activity": [ACTIVITY.splitlines()[0], ADDRESSES.splitlines()[0]],
}  # fmt: skip


def page(found: Findings, old: str = "") -> str:
    """All parts for which there are rows. Of the others the old page's stay. Tables of `averaging` and `transfer` have
    rows of `others`, too: without these they are shown where no page has them."""
    sections: Mapping[str, Callable[[Findings], Iterator[str]]] = {
        "averaging": _averaging, "transfer": _transfer, "activity": _activity,
    }  # fmt: skip
    there = {name: bool(found.rows(name)) for name in (*sections, "others")}
    there |= {name: there[name] and (there["others"] or not old) for name in ("averaging", "transfer")}
    parts = [HEAD]
    for name, section in sections.items():
        parts += section(found) if there[name] else HEADINGS[name]
    parts.append(_choosing(found) if all(there.values()) else CHOICE)
    closed = closing.kept_rows().rows("closing")
    parts.append(closing.section(closing.kept_rows(), old) if closed else closing.HEAD.splitlines()[0])
    return merged(old, "\n\n".join(part.strip("\n") for part in parts) + "\n")


def goals_of(found: Findings) -> list[Goal]:
    """The goals of all parts for which there are rows."""
    known = {"averaging": of_averaging, "transfer": of_transfer, "activity": of_activity}
    return [goal for name, goals in known.items() if found.rows(name) for goal in goals(found)]


def _made(part: str, more: str) -> str:
    return f"`{COMMAND} --parts {part}`: {more}"


def _goals(goals: Iterable[Goal]) -> str:
    return table(["goal", "found", ""], [[one.words, one.found, "met" if one.met else "**missed**"] for one in goals])


# Averaging


def _averaging(found: Findings) -> Iterator[str]:
    trials = max(int(number(row, "trials")) for row in found.rows("averaging"))
    yield AVERAGING
    yield _made("averaging", f"test error, mean and standard error of {trials} draws of noise; lambda in italics.")
    yield table(["shares", "noise", *(f"epsilon {one}" for one in averaging.EPSILONS)], list(_by_epsilon(found)))
    yield _made("averaging others", "other protocols and baselines on the same records.")
    yield table(["model", "trust", "epsilon", "trials", "test error"], list(_others(found)))
    yield _made("averaging", f"test error at epsilon 1 for each lambda, {trials} draws.")
    heads = [f"{one}" for one in averaging.NOISES]
    yield table(["shares", "lambda", "without noise", "one party's own", *heads], list(_by_lambda(found)))
    yield _goals(of_averaging(found))
    yield f"![Test error at lambda 1 against epsilon: every line ends on the majority's](results/{PICTURE})"


def _cell(row: Figure, key: str = "error") -> str:
    if number(row, "trials") < 2:
        return brief(number(row, key))
    return f"{brief(number(row, key))} ({brief(number(row, 'se'))})"


def _strength(row: Figure) -> str:
    return f"*{number(row, 'lambda'):g}*".replace("*0.", "*.")


def _by_epsilon(found: Findings) -> Iterator[list[str]]:
    for shares in (*averaging.SPLITS, averaging.THIN):
        for noise in averaging.NOISES if shares != averaging.THIN else averaging.NOISES[2:]:
            rows = [chosen(found, noise, epsilon, shares) for epsilon in averaging.EPSILONS]
            name = "20/20/20/20/20, rows over the root of 123" if shares == averaging.THIN else shares
            yield [name, _named(noise), *(f"{_cell(row)} {_strength(row)}" for row in rows)]


def _named(noise: str) -> str:
    return f"`gaussian`, {NOISE_NAMES[noise]}" if noise in NOISE_NAMES else f"`{noise}`"


def _others(found: Findings) -> Iterator[list[str]]:
    best = min(found.rows("averaging", noise="batch"), key=lambda row: number(row, "error"))
    alone = min(found.rows("averaging", noise="indiv", shares=averaging.EVEN), key=lambda row: number(row, "error"))
    with_one = found.one("averaging", noise="batch with a constant", **{"lambda": best["lambda"]})
    yield [f"`batch`, one model of all rows, lambda {_strength(best)}", "everybody", "", "1", _cell(best)]
    yield ["the same with a constant, rows over the root of 15", "everybody", "", "1", _cell(with_one)]
    yield ["`indiv`, one party's own model, mean of five", "nobody else", "", "5 parties", _cell(alone)]
    yield ["the majority's label", "", "", "1", _cell(found.one("averaging", noise="majority"))]
    for row in found.rows("others", parties=None):
        tellers = {1: "one teller", 2: "two tellers"}.get(int(number(row, "tellers") if row["tellers"] else 0))
        trust = f"{tellers}'s noise".replace("s's", "s'") if tellers else "nobody; one record a peer"
        yield [f"`{row['mode']}`", trust, str(row["epsilon"]), str(row["trials"]), _cell(row)]


def _by_lambda(found: Findings) -> Iterator[list[str]]:
    for shares in averaging.SPLITS:
        for row in found.rows("averaging", shares=shares, noise="noise-free"):
            same = {"shares": shares, "lambda": row["lambda"]}
            noisy = [found.one("averaging", noise=noise, epsilon="1", **same) for noise in averaging.NOISES]
            own = found.one("averaging", noise="indiv", **same)
            yield [shares, _strength(row).strip("*"), _cell(row), _cell(own), *map(_cell, noisy)]


def picture(found: Findings) -> str:
    """Figure 2 of the paper at its lambda, 1."""
    majority = number(found.one("averaging", noise="majority"), "error")
    ends = (0.05, 0.4)
    colours = ("#1b6ca8", "#2f9e44", "#c2410c")

    def line(name: str, colour: str, dashes: str, **having: str) -> Line:
        rows = [found.one("averaging", epsilon=one, **{"lambda": 1.0}, **having) for one in averaging.FIGURE_EPSILONS]
        return Line(name, colour, [(float(str(row["epsilon"])), number(row, "error")) for row in rows], dashes)

    lines = [
        line(f"printed, smallest {min(split)} %", colour, "", noise="printed", shares=shares)
        for (shares, split), colour in zip(averaging.SPLITS.items(), colours, strict=True)
    ]
    lines.append(line("tight, 20/20/20/20/20", colours[0], "3 3", noise="tight", shares=averaging.EVEN))
    lines.append(line("all rows, with noise", "#777", "3 3", noise="batch with noise", shares="all"))
    lines.append(Line("majority, and no noise", "#000", [(end, majority) for end in ends], "8 4"))
    return chart(lines, "epsilon", "test error", ((0.05, 0.1, 0.2, 0.3, 0.4), (0.2, 0.25, 0.3, 0.35)))


# Transfer

_MODES = {"statistic": "`statistic`", "soft": "`soft`", "vote": "`vote`"}


def _transfer(found: Findings) -> Iterator[str]:
    trials = max(int(number(row, "trials")) for row in found.rows("transfer", mode="statistic"))
    yield TRANSFER
    told = f"accuracy, mean and standard error of {trials} draws of noise; `histogram`: 20 studies."
    yield _made("transfer others", f"{told} The last columns are gaps at the three epsilons.")
    for parties in network.PARTIES:
        locals_ = network.LOCAL if parties == min(network.PARTIES) else network.LOCAL[:1]
        for local in locals_:
            yield _of_parties(found, parties, local)
    yield _goals(of_transfer(found))


def _of_parties(found: Findings, parties: int, local: str) -> str:
    first = found.rows("transfer", parties=parties)[0]
    batch = number(found.one("transfer", parties=parties, mode="batch"), "accuracy")
    free = found.one("transfer", parties=parties, local=local, mode="noise-free")
    named = {"logistic": "logistic regression", "nearest": "the nearest record", "tree": "a decision tree"}[local]
    head = f"**M = {parties:,}, local models by {named}**, {int(number(first, 'tested')):,} test rows:"
    body = list(_rows("transfer", found, free, batch, parties=parties, local=local))
    if local == network.LOCAL[0]:
        thin = found.rows("transfer", parties=parties, local="columns", mode="statistic")
        body.append(_row("`statistic`, rows over the root of 111", thin, free, batch))
        for mode in ("averaging", "moments", "histogram"):
            rows = found.rows("others", parties=parties, mode=mode)
            body += [_row(f"`{mode}`", rows, free, batch)] if rows else []
        for mode, name in _BASELINES.items():
            row = found.one("transfer", parties=parties, mode=mode)
            body.append([name, "", _cell(row, "accuracy"), "", "", "", "", ""])
    return head + "\n\n" + table(_HEADER, body)


_HEADER = ["mode", "noise", *(f"epsilon {one}" for one in modes.EPSILONS), "lambda", "below noise-free", "below batch"]
_BASELINES = {
    "batch": "`batch`, all records, no privacy", "indiv": "`indiv`, one party's own model", "majority": "majority",
}  # fmt: skip


def _rows(
    figure: str, found: Findings, free: Figure, batch: float, **having: str | int | None
) -> Iterator[list[str]]:
    gap = brief(batch - number(free, "accuracy"))
    yield ["noise-free", "", _cell(free, "accuracy"), "", "", _strength(free).strip("*"), "", gap]
    for mode, name in _MODES.items():
        for noise in modes.NOISES:
            yield _row(name, found.rows(figure, mode=mode, noise=noise, **having), free, batch)


def _row(name: str, rows: list[Figure], free: Figure, batch: float) -> list[str]:
    """A row of the mode at each epsilon, with the gaps to the model without noise and to the batch."""
    right = [number(row, "accuracy") for row in rows]
    noise = str(rows[0]["noise"] or "local")
    strengths = [_strength(row).strip("*") if row["lambda"] is not None else "" for row in rows]
    gaps = [", ".join(brief(top - one, 3) for one in right) for top in (number(free, "accuracy"), batch)]
    cells = [_cell(row, "accuracy") for row in rows]
    return [name, NOISE_NAMES.get(noise, noise), *cells, ", ".join(strengths).strip(", "), *gaps]


# Activities


def _activity(found: Findings) -> Iterator[str]:
    yield ACTIVITY
    for task, text in (("activity", ""), ("addresses", ADDRESSES)):
        rows = found.rows("activity", task=task)
        trials = max(int(number(row, "trials")) for row in rows if row["mode"] == "statistic")
        if text:
            yield text
        yield _made("activity", f"accuracy, mean and standard error of {trials} draws of noise.")
        batch = number(found.one("activity", task=task, mode="batch"), "accuracy")
        free = found.one("activity", task=task, mode="noise-free")
        body = list(_rows("activity", found, free, batch, task=task))
        for mode, name in _BASELINES.items():
            row = found.one("activity", task=task, mode=mode)
            body.append([name, "", _cell(row, "accuracy"), "", "", "", "", ""])
        yield table(_HEADER, body)
        if task == "activity":
            yield _goals(of_activity(found))


# Choosing


def _choosing(found: Findings) -> str:
    """The table for staff, with its figures."""
    told = {
        "averaged": brief(number(chosen(found, "two gaussians", "1", averaging.EVEN), "error"), 3),
        "uneven": brief(number(chosen(found, "two gaussians", "1", "10/20/20/20/30"), "error"), 3),
    }
    alone = min(found.rows("averaging", noise="indiv", shares=averaging.EVEN), key=lambda row: number(row, "error"))
    told["own"] = brief(number(alone, "error"), 3)
    for mode in ("moments", "gradient"):
        told[mode] = brief(number(found.one("others", mode=mode, epsilon="1", tellers=2, parties=None), "error"), 3)
    for mode in ("averaging", "moments"):
        row = found.one("others", mode=mode, epsilon="0.1", parties=1_000)
        told[f"kdd_{mode}"] = brief(number(row, "accuracy"), 3)
    row = found.one("transfer", mode="statistic", noise="gaussian", epsilon="0.1", parties=1_000, local="logistic")
    told["kdd_transfer"] = brief(number(row, "accuracy"), 3)
    told["kdd_own"] = brief(number(found.one("transfer", mode="indiv", parties=1_000), "accuracy"), 3)
    row = found.one("activity", task="activity", mode="statistic", noise="gaussian", epsilon="1")
    told["activity"] = brief(number(row, "accuracy"), 3)
    rows = [[cell.format(**told) for cell in row] for row in CHOOSING]
    return f"{CHOICE}\n\n" + table(["you have", "choose", "because"], rows)
