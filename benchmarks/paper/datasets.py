"""The data sets, by file name in a folder that the caller names. Nothing here ships data."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from attrs import define, evolve, field

from aggregator.lab.simulation.people import People, people_from_csv, people_from_rows
from anon.protocols.histogram.sections import OnePacket
from anon.study.features import Learning
from anon.study.proposal import Proposal
from anon.tables.streams import Cell
from benchmarks.paper import courses
from benchmarks.paper.population import Population
from benchmarks.paper.studies import Dictionary, Number, Text, rounded
from examples.protocols import PROTOCOLS

SEED = 2017
HELD_OUT = 0.3
CENSUS = Path(__file__).resolve().parents[2] / "examples" / "census"

Rows = list[dict[str, Cell]]
Split = tuple[People, People]


@define
class DataSet:
    """A named data set: the paper's study of it, ours, and the people of each as (peers, test)."""

    name: str
    title: str
    guess: float
    """A round public guess of the share of positive labels."""
    papers_study: Proposal
    our_study: Proposal
    _read: Callable[[Proposal], Split] = field(repr=False)
    declared_study: Proposal | None = None
    """Ours with cuts from public knowledge instead of private binning, where somebody wrote them down."""

    @cached_property
    def papers_people(self) -> Split:
        """Peers and test people under the paper's study."""
        return self._read(self.papers_study)

    @cached_property
    def our_people(self) -> Split:
        """The same people under our study."""
        return self._read(self.our_study)

    @cached_property
    def declared_people(self) -> Split:
        """The same people under the study with declared cuts. Raises `LookupError` where there is none."""
        if self.declared_study is None:
            raise LookupError(f"{self.name} has no study with declared cuts")
        return self._read(self.declared_study)

    def read(self) -> None:
        """Read everything now, before processes part. Raises `FileNotFoundError`."""
        assert self.population is not None
        assert len(self.population) == len(self.our_people[0])
        assert self.declared_study is None or self.declared_people is not None

    @cached_property
    def population(self) -> Population:
        """For the fast form of the paper's pipeline."""
        return Population.of(self.papers_study, *self.papers_people)


XUETANG = Dictionary(
    "Leaving an online course (XuetangX, 39 courses)",
    "dropout",
    (1,),
    (0,),
    0.8,
    (
        Number("access_count", 0, 5000, "log", 0),
        Number("first_access_day", 0, 30),
        Number("timespan_days", 0, 30, missing=0),
        Number("video_access_count", 0, 1000, "log", 0),
        Number("video_start_day", -1, 30, missing=-1),
        Number("problem_access_count", 0, 1000, "log", 0),
        Number("problem_start_day", -1, 30, missing=-1),
    ),
)

_WORDS = ("free", "money", "remove", "your", "000", "hp", "george", "business", "our", "edu")

SPAM = Dictionary(
    "Unwanted mail (Spambase)",
    "spam",
    (1,),
    (0,),
    0.4,
    (
        *(Number(f"word_freq_{word}", 0, 10, "log", 0) for word in _WORDS),
        Number("exclamations", 0, 10, "log", 0),
        Number("dollars", 0, 5, "log", 0),
        Number("capital_run_length_average", 1, 100, "log", 1),
        Number("capital_run_length_longest", 1, 2000, "log", 1),
        Number("capital_run_length_total", 1, 10000, "log", 1),
    ),
)

NEWS = Dictionary(
    "Articles shared 1,400 times or more (Online News Popularity)",
    "popular",
    (1,),
    (0,),
    0.5,
    (
        Number("kw_avg_avg", 0, 20000, "log", 0),
        Number("kw_max_avg", 0, 100000, "log", 0),
        Number("self_reference_avg_sharess", 0, 100000, "log", 0),
        Number("lda_00", 0, 1),
        Number("lda_01", 0, 1),
        Number("lda_02", 0, 1),
        Number("lda_04", 0, 1),
        Number("num_hrefs", 0, 200, "log", 0),
        Number("num_imgs", 0, 100, "log", 0),
        Number("n_tokens_content", 0, 5000, "log", 0),
        Number("global_subjectivity", 0, 1),
        Text("channel", ("entertainment", "world")),
        Text("is_weekend", ("1",)),
    ),
)

INTRUSION = Dictionary(
    "Attacks on a network (KDD Cup 99, 60,000 of the 10 % part)",
    "attack",
    (1,),
    (0,),
    0.8,
    (
        Number("src_bytes", 0, 1_000_000, "log", 0),
        Number("dst_bytes", 0, 1_000_000, "log", 0),
        Number("count", 0, 511, missing=0),
        Number("srv_count", 0, 511, missing=0),
        Number("serror_rate", 0, 1, missing=0),
        Number("same_srv_rate", 0, 1, missing=1),
        Number("dst_host_count", 0, 255, missing=0),
        Number("dst_host_srv_count", 0, 255, missing=0),
        Number("dst_host_same_src_port_rate", 0, 1, missing=0),
        Number("duration", 0, 60000, "log", 0),
        Text("protocol_type", ("icmp",)),
        Text("flag", ("SF",)),
        Text("logged_in", ("1",)),
    ),
)

SUSY = Dictionary(
    "Supersymmetric collisions (SUSY, 10,000)",
    "susy",
    (1,),
    (0,),
    0.5,
    (
        *(Number(name, 0, 4) for name in ("lepton_1_pt", "lepton_2_pt", "missing_energy_magnitude", "met_rel")),
        *(Number(name, -2.5, 2.5) for name in ("lepton_1_eta", "lepton_2_eta")),
        Number("axial_met", -4, 4),
        *(Number(name, 0, 4) for name in ("m_r", "m_tr_2", "r", "mt2", "s_r", "m_delta_r")),
        Number("dphi_r_b", 0, 2),
        Number("cos_theta_r1", 0, 1),
    ),
)


def _news(row: dict[str, str]) -> None:
    row["popular"] = "1" if float(row["shares"]) >= 1400 else "0"
    prefix = "data_channel_is_"
    row["channel"] = next((key[len(prefix) :] for key in row if key.startswith(prefix) and float(row[key]) == 1), "")


def _intrusion(row: dict[str, str]) -> None:
    row["attack"] = "0" if row["label"] == "normal" else "1"


def _as_is(row: dict[str, str]) -> None:
    """Nothing to derive."""


RENAMED = {"char_freq_!": "exclamations", "char_freq_$": "dollars"}

FILES: Mapping[str, tuple[Dictionary, str, Callable[[dict[str, str]], None], int | None]] = {
    "xuetangx": (XUETANG, "kddcup2015_enrolments.csv.gz", _as_is, None),
    "news": (NEWS, "online_news_popularity.csv.gz", _news, None),
    "intrusion": (INTRUSION, "kddcup99_10pct.csv.gz", _intrusion, 60_000),
    "susy": (SUSY, "susy_10k.csv.gz", _as_is, None),
    "spam": (SPAM, "spambase.csv.gz", _as_is, None),
}
NAMES = ("adult", "xuetangx", "courses", *[name for name in FILES if name != "xuetangx"])


def load(name: str, folder: Path, cache: Path, bins: int = 4) -> DataSet:
    """A data set by name. Reading is put off until its people are asked for. `cache`: for what takes minutes."""
    if name == "adult":
        return _census(folder, bins)
    if name == "courses":
        file = folder / courses.FILE
        return DataSet(
            name,
            courses.TITLE,
            courses.GUESS,
            courses.papers(),
            courses.ours(bins),
            lambda study: split(courses.people(study, file, cache)),
        )
    dictionary, file_name, derive, sample = FILES[name]

    def read(study: Proposal) -> Split:
        rows = list(_rows(folder / file_name, dictionary, derive))
        if sample is not None:
            chosen = np.random.default_rng(SEED).permutation(len(rows))[:sample]
            rows = [rows[at] for at in chosen]
        return split(people_from_rows(study, rows))

    return DataSet(name, dictionary.title, dictionary.guess, dictionary.papers(), dictionary.ours(bins), read)


def _census(folder: Path, bins: int) -> DataSet:
    """Adult by the example's study files; gains and losses, which most people lack, are binned by logarithms."""
    papers, declared = (PROTOCOLS.load_proposal(CENSUS / f"{name}.toml") for name in ("paper", "study"))
    finer = [
        evolve(one, bins=bins, scale="log" if one.name.startswith("capital") else one.scale) if one.bins else one
        for one in papers.features
    ]
    ours = evolve(
        papers, features=tuple(finer), design=OnePacket("one-packet", epsilon=1.0), learning=Learning(score_share=0.1)
    )
    title = "Income above 50,000 dollars (Adult)"
    return DataSet("adult", title, 0.25, papers, ours, lambda study: _adult(study, folder), declared)


def split(people: People) -> Split:
    """70 % are peers, the others are who the model is scored on; the same people every time."""
    order = np.random.default_rng(SEED).permutation(len(people))
    held = int(HELD_OUT * len(people))
    return people.take(order[held:]), people.take(order[:held])


def _adult(study: Proposal, folder: Path) -> Split:
    return people_from_csv(study, folder / "adult_train.csv.gz"), people_from_csv(study, folder / "adult_test.csv.gz")


def _rows(path: Path, dictionary: Dictionary, derive: Callable[[dict[str, str]], None]) -> Iterator[dict[str, Cell]]:
    wanted = {one.column: isinstance(one, Number) for one in dictionary.columns}
    with gzip.open(path, "rt", newline="", encoding="utf-8") as lines:
        reader = csv.reader(lines)
        header = [_plain(name) for name in next(reader)]
        for cells in reader:
            row = dict(zip(header, cells, strict=True))
            derive(row)
            found: dict[str, Cell] = {
                name: (rounded(float(row[name])) if number and row[name] else row[name].strip() or None)
                for name, number in wanted.items()
            }
            found[dictionary.label] = float(row[dictionary.label])
            yield found


def _plain(name: str) -> str:
    return RENAMED.get(name) or re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")
