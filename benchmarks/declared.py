"""Directions and cuts that staff could have declared for four public data sets, written down before they were scored.

They come from the meaning of the columns alone: no label was looked at to choose a column, a direction or a cut. Where
reasons point both ways, the direction is 0. Known beforehand from published descriptions: the folder's README says that
few accesses go with leaving the course. The authors of spambase say that "george" and "650" mark their own mail. The
quantiles of the columns, without labels, had been seen when ranges and cuts were chosen; a cut is a round number.

Positive labels: an income above 50,000 dollars; no event in the ten days after the course's window; unwanted mail; an
article that is shared at least 1,400 times. A direction +1 says that larger values go with the positive label. That of
a categorical column has one sign for each of its categories, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen


@frozen
class Column:
    """One column as a feature: its direction with the `reason` for it, and the cuts that could be declared.

    Numeric: `range`, `scale` and `cuts`. `given`: the cuts are declared in every study, since the column knows two
    values or its range cannot be divided evenly. Categorical: `categories`, each with the values of the file that count
    as it; the last takes every other value.
    """

    name: str
    expects: int | tuple[int, ...]
    reason: str
    range: tuple[float, float] = (0.0, 1.0)
    cuts: tuple[float, ...] = ()
    scale: str = "linear"
    given: bool = False
    categories: Mapping[str, tuple[str, ...]] = field(factory=dict)


@frozen
class DataSet:
    """A data set: its `files` (rows to learn from, and rows to score on where there is a second file), its label's
    column, the public guess of the positive labels' share, and the columns that are asked about."""

    name: str
    files: tuple[str, ...]
    label: str
    base_rate: float
    columns: tuple[Column, ...]


def _either(name: str, words: dict[str, tuple[str, ...]], expects: tuple[int, int], reason: str) -> Column:
    return Column(name, expects, reason, categories=words)


def _word(word: str, expects: int, reason: str) -> Column:
    """A word's or sign's share of a mail, in percent; the declared cut is 0: it occurs, or it does not."""
    name = f"word_freq_{word}" if word[0].isalnum() else f"char_freq_{word}"
    return Column(name, expects, reason, (0, 20), (0,), "log")


def _flag(name: str, expects: int, reason: str) -> Column:
    return Column(name, expects, reason, (0, 1), (0,), given=True)


ADULT = DataSet(
    "adult",
    ("adult_train.csv.gz", "adult_test.csv.gz"),
    "income",
    0.25,
    (
        Column("age", 1, "Pay grows with years at work, up to a pension.", (17, 90), (29, 44)),
        Column("education-num", 1, "Posts that pay well ask for degrees.", (1, 16), (9, 12)),
        Column("hours-per-week", 1, "More hours are paid more, and well paid posts ask for many.", (1, 99), (34, 44)),
        Column("capital-gain", 1, "A gain needs savings to invest.", (0, 99999), (0,), "log", given=True),
        Column("capital-loss", 1, "A loss needs savings to invest, too.", (0, 4356), (0,), "log", given=True),
        _either("sex", {"Female": ("Female",), "Male": ()}, (-1, 1), "Women were paid less in 1994, says the census."),
        _either(
            "marital-status",
            {"married": ("Married-civ-spouse", "Married-AF-spouse"), "not married": ()},
            (1, -1),
            "The married are older and in steadier work; many of the others are young.",
        ),
        _either(
            "relationship",
            {"spouse": ("Husband", "Wife"), "other": ()},
            (1, -1),
            "As for marriage; children of the household are young.",
        ),
        _either(
            "workclass",
            {
                "own or public": (
                    "Self-emp-inc", "Self-emp-not-inc", "Federal-gov", "Local-gov", "State-gov",
                ),
                "company": (),
            },
            (1, -1),
            "Public posts and firms of one's own ask for training more often than companies' hourly work.",
        ),
        _either("race", {"white": ("White",), "other": ()}, (1, -1), "Published pay gaps of the time."),
        _either(
            "native-country",
            {"United States": ("United-States",), "other": ()},
            (1, -1),
            "Newcomers often start in work below their training.",
        ),
    ),
)  # fmt: skip

COURSE = DataSet(
    "kddcup2015",
    ("kddcup2015_enrolments.csv.gz",),
    "dropout",
    0.8,
    (
        Column("access_count", -1, "More visits show more interest, and go with staying.", (0, 1000), (10, 50), "log"),
        Column("timespan_days", -1, "A visit long after the first shows staying power.", (0, 30), (1, 10)),
        Column("video_access_count", -1, "Watching is taking part.", (0, 400), (0, 5), "log"),
        Column("problem_access_count", -1, "Solving problems goes with staying.", (0, 1000), (0, 10), "log"),
        Column(
            "first_access_day",
            0,
            "Late starters lag behind, but they were here recently: reasons point both ways.",
            (0, 30),
            (3, 14),
        ),
        Column(
            "video_start_day",
            0,
            "Minus one means never, the worst sign, and stands below the first day, the best.",
            (-1, 30),
            (-1, 7),
            given=True,
        ),
        Column("problem_start_day", 0, "As for videos.", (-1, 30), (-1, 7), given=True),
    ),
)  # fmt: skip

SPAM = DataSet(
    "spambase",
    ("spambase.csv.gz",),
    "spam",
    0.5,
    (
        _word("free", 1, "Offers say that something is free."),
        _word("money", 1, "Offers speak of money."),
        _word("remove", 1, "Bulk mail tells how to be removed from its list."),
        _word("000", 1, "Offers name sums in thousands."),
        _word("credit", 1, "Offers of credit."),
        _word("business", 1, "Offers of business; colleagues name their project instead."),
        _word("your", 1, "Advertising speaks to the reader."),
        _word("our", 1, "Advertising speaks for a firm."),
        _word("$", 1, "Prices."),
        _word("!", 1, "Advertising shouts."),
        Column("capital_run_length_longest", 1, "Advertising shouts in capitals.", (1, 10000), (5, 20), "log"),
        Column("capital_run_length_average", 1, "As above.", (1, 1100), (2, 4), "log"),
        _word("george", -1, "The receiver's own name, used by people who know him."),
        _word("hp", -1, "The receivers' firm."),
        _word("650", -1, "The area code of the receivers' place, in signatures of colleagues."),
        _word("meeting", -1, "Colleagues meet; advertisers do not."),
        _word("project", -1, "A word of work."),
        _word("edu", -1, "Addresses of universities, which do not advertise in bulk."),
        _word("re", -1, "An answer to an earlier mail."),
        _word("1999", -1, "Dates in mails about work and appointments."),
    ),
)

NEWS = DataSet(
    "news",
    ("online_news_popularity.csv.gz",),
    "shares",
    0.5,
    (
        Column("num_hrefs", 1, "Many links mean a richer article.", (0, 300), (5, 12), "log"),
        Column("num_imgs", 1, "Pictures are shared.", (0, 130), (1, 5), "log"),
        Column("num_videos", 1, "Videos are shared.", (0, 100), (0,), "log"),
        Column("num_keywords", 1, "More keywords let more people find it.", (0, 10), (5, 8)),
        Column("n_tokens_content", 0, "Long articles are shared more or read less.", (0, 8500), (250, 700), "log"),
        _flag("data_channel_is_socmed", 1, "Readers of news about social media share."),
        _flag("data_channel_is_tech", 1, "The core readers of this site are interested in technology."),
        _flag("data_channel_is_lifestyle", 1, "Advice is passed on to friends."),
        _flag("data_channel_is_world", -1, "World news are read elsewhere too and seldom passed on."),
        _flag("data_channel_is_entertainment", -1, "There is a lot of it, and it is short-lived."),
        _flag("is_weekend", 1, "Fewer articles appear, and people have time."),
        Column("kw_avg_avg", 1, "Other articles with its keywords were shared often.", (0, 44000), (2500, 3500), "log"),
        Column("kw_max_avg", 1, "As above, for its best keyword.", (0, 300000), (4000, 6000), "log"),
        Column("kw_min_avg", 1, "As above, for its worst keyword.", (0, 3700), (500, 2000), "log"),
        Column(
            "self_reference_avg_sharess",
            1,
            "It links to popular articles of the same site.",
            (0, 850000),
            (1000, 5000),
            "log",
        ),
        Column("global_subjectivity", 1, "Opinions are shared more than reports.", (0, 1), (0.4, 0.5)),
        Column("global_sentiment_polarity", 1, "People pass on good news more than bad.", (-1, 1), (0.05, 0.18)),
    ),
)  # fmt: skip

SETS = (ADULT, COURSE, SPAM, NEWS)
