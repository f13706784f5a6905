"""PFDS (Fioretto and Van Hentenryck 2019) beside its repairs: table 2, figure 3, and docs/rows-and-groups.md.

    python -m benchmarks.parties.pfds --data FOLDER [--folds 10] [--scored 3] [--sets Census Diabetes Bikes News]

FOLDER holds the Adult, diabetes, bike and news files (.gz). `printed` is the paper's arithmetic. Yet text attributes
branch two ways: as printed no table could be made, and a check says why. `repaired` is `anon.protocols.trees`. Each
agent's final model learns from the rows of all and from its own records, as in the paper. `--scored`: of so many agents
the final model is scored. Rows are kept in benchmarks/out/pfds.json. Fails where a check does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from anon.ldp.epsilon import nano
from anon.noise.bernoulli import Coins
from anon.protocols.trees.attributes import Attribute, LabelledRow, NumberAttribute, TextAttribute, whole
from anon.protocols.trees.consistent import consistent
from anon.protocols.trees.drawing import commonest, leaves, rows
from anon.protocols.trees.growing import TreeNode, TreePlan, grown
from benchmarks.data import data_folder
from benchmarks.figures import OUT, Figure, publish
from benchmarks.parties.noise import Array, chance
from benchmarks.parties.pfds_models import TASKS, error_of, fitted, functional, perturbed, short
from benchmarks.parties.pfds_page import PAGE, failed, page
from benchmarks.parties.pfds_sets import BUCKETS, SETS, DataSet, agents_of, census, columns_of, folds_of
from benchmarks.parties.printed import leaves_expected, optimised, printed

EPSILONS = ("1", "0.5", "0.1")
Way = Literal["printed", "repaired", "add-remove"]
WAYS: Sequence[Way] = ("printed", "repaired", "add-remove")
KEPT = OUT / "pfds.json"
DEPTHS = range(2, 9)
PARTITIONS, CELLS = 50, 16


def coins_of(*parts: object) -> Coins:
    """Coins that repeat."""
    numbers = iter(range(10**9))
    return Coins(lambda size: hashlib.shake_128(f"{parts} {next(numbers)}".encode()).digest(size))


def records_of(data: DataSet, held: Array) -> list[LabelledRow]:
    """The records of an agent."""
    classes = data.classes
    return [LabelledRow(tuple(data.places[at].tolist()), int(classes[at])) for at in held]


def agreed(way: Way, data: DataSet, epsilon: str) -> TreePlan:
    """The plan of all agents."""
    return TreePlan(data.attributes, data.kinds, nano(epsilon), "replace-one" if way == "repaired" else "add-remove")


def shared(way: Way, records: Sequence[LabelledRow], plan: TreePlan, coins: Coins) -> tuple[TreeNode, Array]:
    """One agent's tree, by which rows are labelled, and the places of its rows."""
    if way == "printed":
        tree = printed(records, plan, coins, two_way=True)
        settled = optimised(tree, records, plan, coins)
    else:
        found = grown(records, plan, coins)
        tree = settled = consistent(found.root, found.total)
    drawn = [row.row for row in rows(settled, plan.attributes, coins)]
    return tree, np.array(drawn, dtype=int).reshape(-1, len(plan.attributes))


def answers(node: TreeNode, places: Array) -> Array:
    """The class that a tree gives to each row."""
    found = np.empty(len(places), dtype=int)

    def go(node: TreeNode, at: Array) -> None:
        if node.split is None:
            found[at] = commonest(node.counts)
            return
        sides = np.array([node.split.first >> place & 1 for place in range(64)], dtype=bool)
        first = sides[places[at, node.split.attribute]]
        go(node.children[0], at[first])
        go(node.children[1], at[~first])

    go(node, np.arange(len(places)))
    return found


def labelled(trees: Sequence[TreeNode], places: Array, kinds: int) -> Array:
    """The class that most trees give to each row."""
    votes = np.zeros((len(places), kinds), dtype=int)
    for tree in trees:
        votes[np.arange(len(places)), answers(tree, places)] += 1
    return np.asarray(votes.argmax(axis=1))


def mixed(trees: Sequence[TreeNode], places: Array, kinds: int, use: int) -> Array:
    """A class drawn for each row by the mean share that it has in the leaves of all trees."""
    shares = np.zeros((len(places), kinds))
    for tree in trees:
        _add_shares(tree, places, np.arange(len(places)), shares)
    ends = np.cumsum(shares, axis=1)
    return np.asarray((chance(78, use).uniform(size=(len(places), 1)) * ends[:, -1:] > ends).sum(axis=1))


def _add_shares(node: TreeNode, places: Array, at: Array, shares: Array) -> None:
    if node.split is None:
        counts = np.maximum(node.counts, 0)
        shares[at] += counts / counts.sum() if counts.sum() > 0 else 1 / len(counts)
        return
    sides = np.array([node.split.first >> place & 1 for place in range(64)], dtype=bool)
    first = sides[places[at, node.split.attribute]]
    _add_shares(node.children[0], places, at[first], shares)
    _add_shares(node.children[1], places, at[~first], shares)


def as_labels(data: DataSet, classes: Array, use: int) -> Array:
    """Classes as -1 and 1, and buckets as a number drawn within them."""
    if not data.regression:
        return np.asarray(classes * 2 - 1)
    return np.asarray((classes + chance(77, use).uniform(size=len(classes))) / BUCKETS * 2 - 1)


def table_two(data: DataSet, folds: int, scored: int) -> Iterator[Figure]:
    """All rows of one data set: of each fold, way, epsilon and task the mean error over agents."""
    tasks = TASKS[2:] if data.regression else TASKS[:2]
    columns = columns_of(data.attributes, data.places)
    labels = data.labels if data.regression else data.labels * 2 - 1
    for fold, (train, test) in enumerate(folds_of(data, folds)):
        agents = [held for held in agents_of(data, train, fold) if len(held)]
        about: Figure = {"set": data.name, "fold": fold, "agents": len(agents)}
        tested = columns[test], labels[test]
        yield from _baselines(about, tasks, agents, columns, labels, train, test)
        for way in WAYS:
            for epsilon in EPSILONS:
                plan, coins = agreed(way, data, epsilon), coins_of(data.name, fold, way, epsilon)
                found = [shared(way, records_of(data, held), plan, coins) for held in agents]
                trees, parts = [tree for tree, _ in found], [part for _, part in found]
                places = np.vstack(parts)
                own = np.concatenate([answers(tree, part) for tree, part in found])
                made = columns_of(data.attributes, places)
                told = {"voted": labelled(trees, places, data.kinds), "own": own}
                if way != "printed":
                    told["mixed"] = mixed(trees, places, data.kinds, fold)
                for task in tasks:
                    for by, classes in told.items():
                        drawn = as_labels(data, classes, fold)
                        errors = [
                            error_of(task, *tested, fitted(
                                task, np.vstack([made, columns[held]]), np.concatenate([drawn, labels[held]])
                            )[None])
                            for held in agents[:scored]
                        ]  # fmt: skip
                        some = {"rows": len(made), "positive": round(float(np.mean(drawn > 0)), 4)}
                        yield {**about, "task": task, "way": way, "labels": by, "epsilon": epsilon, **some,
                               "error": round(float(np.mean(errors)), 5)}  # fmt: skip


def _baselines(
    about: Figure, tasks: Sequence[str], agents: Sequence[Array], columns: Array, labels: Array, train: Array,
    test: Array,
) -> Iterator[Figure]:
    """The majority's label or the mean, own data, one model of all rows, and the private model of each agent."""
    for task in tasks:
        tested = columns[test], labels[test]
        constant = float(labels[train].mean()) if task == "linear" else float(np.sign(labels[train].mean()))
        wrong = (labels[test] - constant) ** 2 if task == "linear" else labels[test] != constant
        models = np.array([fitted(task, columns[held], labels[held]) for held in agents])
        own = [error_of(task, *tested, model[None]) for model in models]
        everything = fitted(task, columns[train], labels[train])
        found: list[tuple[str, str | None, float]] = [
            ("majority", None, float(np.mean(wrong))), ("own data", None, float(np.mean(own))),
            ("all rows", None, error_of(task, *tested, everything[None])),
        ]  # fmt: skip
        for epsilon in EPSILONS:
            thin, private = private_models(task, columns, labels, agents, epsilon)
            found.append(("private models", epsilon, error_of(task, thin[test], labels[test], private)))
        for way, cost, error in found:
            yield {**about, "task": task, "way": way, "labels": None, "epsilon": cost, "rows": None, "positive": None,
                   "error": round(error, 5)}  # fmt: skip


def private_models(
    task: str, columns: Array, labels: Array, agents: Sequence[Array], epsilon: str
) -> tuple[Array, Array]:
    """The columns that the private model of a task takes, and that model of each agent."""
    spring = chance(5, int(float(epsilon) * 10))
    if task == "linear":
        thin = columns / np.sqrt(columns.shape[1])
        models = [functional(thin[held], labels[held], float(epsilon), spring) for held in agents]
    else:
        thin = short(columns)
        models = [perturbed(task, thin[held], labels[held], float(epsilon), spring) for held in agents]
    return thin, np.array(models)


# Figure 3: fidelity


def fidelity(data: DataSet, draws: int) -> Iterator[Figure]:
    """One agent of 440 rows: sizes by depth, the Wasserstein distance of random partitions, and processor time."""
    held = chance(3).permutation(len(data.labels))[:440]
    records = records_of(data, held)
    for epsilon in ("1", "0.1"):
        for depth in DEPTHS:
            for way in WAYS:
                yield _fidelity(data, records, way, epsilon, depth, draws)


def _fidelity(
    data: DataSet, records: Sequence[LabelledRow], way: Way, epsilon: str, depth: int, draws: int
) -> Figure:
    neighbours: Literal["replace-one", "add-remove"] = "replace-one" if way == "repaired" else "add-remove"
    plan = TreePlan(data.attributes, data.kinds, nano(epsilon), neighbours, depth - 1)
    true = np.array([record.row for record in records])
    clipped, sizes, distances = [], [], []
    start = time.process_time()
    for draw in range(draws):
        coins = coins_of("figure 3", way, epsilon, depth, draw)
        if way == "printed":
            tree = printed(records, plan, coins, two_way=True, levels=depth)
            settled = optimised(tree, records, plan, coins)
        else:
            found = grown(records, plan, coins)
            tree, settled = found.root, consistent(found.root, found.total)
        ends = [leaf.counts for _, leaf in leaves(tree, whole(data.attributes))]
        clipped.append(sum(max(sum(counts), 0) for counts in ends))
        drawn = np.array([row.row for row in rows(settled, data.attributes, coins)]).reshape(-1, true.shape[1])
        sizes.append(len(drawn))
        distances.append(distance(data.attributes, true, drawn, draw))
    error = float(np.std(sizes, ddof=1)) / draws**0.5
    return {"epsilon": epsilon, "depth": depth, "way": way, "leaves": len(ends),
            "clipped": round(float(np.mean(clipped))), "size": round(float(np.mean(sizes)), 1),
            "size_se": round(error, 1), "wasserstein": round(float(np.mean(distances)), 4),
            "cpu_ms": round((time.process_time() - start) / draws * 1000)}  # fmt: skip


def distance(attributes: Sequence[Attribute], true: Array, drawn: Array, use: int) -> float:
    """The mean distance of the histograms of random partitions: each into cells along one attribute's places."""
    spring, found = chance(9, use), []
    for _ in range(PARTITIONS // 10):
        at = int(spring.integers(len(attributes)))
        count = attributes[at].places
        cell = spring.integers(0, min(CELLS, count), count) if isinstance(attributes[at], TextAttribute) else (
            np.searchsorted(np.sort(spring.integers(0, count, min(CELLS, count) - 1)), np.arange(count))
        )  # fmt: skip
        first, second = (
            np.bincount(cell[some[:, at]], minlength=CELLS) / max(len(some), 1) for some in (true, drawn)
        )
        found.append(float(np.abs(np.cumsum(first - second)).sum()))
    return float(np.mean(found))


def large(data: DataSet) -> Figure:
    """One agent with 50,000 records: wall and processor seconds, and the largest memory of the process."""
    held = np.resize(np.arange(len(data.labels)), 50_000)
    records, start, wall = records_of(data, held), time.process_time(), time.monotonic()
    tree, places = shared("repaired", records, agreed("repaired", data, "1"), coins_of("large"))
    return {"records": len(records), "rows": len(places), "cpu_s": round(time.process_time() - start, 1),
            "wall_s": round(time.monotonic() - wall, 1), "leaves": sum(1 for _ in leaves(tree, whole(data.attributes))),
            "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}  # fmt: skip


def impossible(data: DataSet) -> Figure:
    """The leaves of the tree as printed, on average and exactly, and the rows of their clipped counts at epsilon 1."""
    texts = [attribute.places for attribute in data.attributes if not isinstance(attribute, NumberAttribute)]
    expected = leaves_expected(len(data.attributes) - len(texts), texts)
    # The size of an empty leaf is the sum of two Laplace counts of scale 16. Cut at 0, its mean is 3/4 of that.
    return {"set": data.name, "leaves": round(expected), "rows": round(expected * 16 * 3 / 4)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, keep and write the page; 1 if a check fails."""
    parser = argparse.ArgumentParser(description="PFDS as printed, repaired, and beside others.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--folds", type=int, default=10, help="so many of ten")
    parser.add_argument("--scored", type=int, default=3, help="agents whose final model is scored")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--output", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    publish("pfds-large", [large(census(options.data))], {})  # first, while the process is small
    kept = json.loads(KEPT.read_text("utf-8"))["rows"] if KEPT.exists() else []
    table: list[Figure] = [row for row in kept if row["set"] not in options.sets]
    makers: list[Callable[[Path], DataSet]] = [SETS[name] for name in options.sets]
    for make in makers:
        for row in table_two(make(options.data), options.folds, options.scored):
            table.append(row)
            print(*row.values(), file=sys.stderr, flush=True)
    publish("pfds", table, {"folds": options.folds, "scored": options.scored})
    publish("pfds-figure3", list(fidelity(census(options.data), 10)), {})
    sizes = [impossible(SETS[name](options.data)) for name in ("Census", "Bikes")]
    publish("pfds-leaves", sizes, {})
    old = options.output.read_text("utf-8") if options.output.exists() else ""
    options.output.write_text(page(old, "table", "leaves", "figure3", "large"), "utf-8")
    wrong = failed()
    print(*(f"failed: {words}" for words in wrong), sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
