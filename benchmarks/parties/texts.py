"""The words of docs/parties.md between its tables."""

HEAD = """\
<!-- Written by `python -m benchmarks.parties --data FOLDER`; do not edit it by hand. -->

# Parties with many records

A party is a clinic, a teaching assistant or a mail folder: it holds many records. Two protocols learn from parties in
one message each. `averaging` publishes the mean of the weights that each party fitted alone. `transfer` publishes a
model that learned from the parties' votes on public rows. They follow Pathak, Rane and Raj (2010) and Hamm, Cao and
Belkin (2016). This page repeats their measurements, with [their errors](errata.md) corrected. Staff may begin with
[the last table](#when-to-choose-which).

**How.** `--data FOLDER` holds the public files; the project ships none. All draws have seeds. Noise is drawn in
floating point, with the deviation of a study's discrete noise. Only the noise is drawn anew; the division of records is
one. A standard error is that of the mean over draws, in brackets. It leaves out the chance in which rows are the test:
with 10,000 test rows that is about .004 at .8 and .001 at .99.

**Noise.** `gaussian` is what a study adds, at delta 1e-6: the full noise of one teller, or of two. One is enough for
the promise; where neither is trusted, two add theirs. *Pure* noise has no delta: its density is exp(-|x| / b) in the L2
norm, and somebody trusted draws it. Neighbours differ by one unit in another's place.

**Two units.** In `averaging` on Adult the unit is a *record*: a party's other records are no secret from it. In
`transfer` the unit is a *party with all of its records*, which is stronger. Figures of the two cannot be compared.
"""

AVERAGING = """\
## Averaging: income of five parties (Adult)

32,561 training records of the 1994 census lie with five parties, in the shares named; 16,281 are the test. Columns are
the 123 of a9a, 0 or 1, at most 14 of them 1. A row over the root of 14 has norm at most 1. There is no constant: the
columns of one question nearly add up to one. The unit is a record, replaced.

Each party minimises (1/n) sum log(1 + exp(-y w.x)) + (lambda/2) |w|^2 exactly. One record moves its weights by at most
2 / (n lambda). The plain mean of K = 5 parties moves by 2 / (K n lambda), n being the smallest party's records.

* `printed`: the paper's noise, at 2 / (n lambda epsilon): K times too large.
* `tight`: the same density at the mean's own sensitivity, pure.
* `gaussian`: with `moved_by_one` and `sigma_squared_for`, as a study states it.

**Lambda** is chosen on a fifth of the training records, held out. There models are fitted to the other four fifths, and
their noise is that of all. The test figures are of models that are then fitted to all training records. The choice
itself is not charged: it stands for one on public records. The grid was made finer, and the constant left out, when
test errors without a choice had been seen. At its lambda, 1, the paper's models say "no" to everybody.

The parties' records are alike here: one party's own model is as good as the mean of five, and better than the mean with
noise. Averaging is then for those who hold no records.

A study divides rows by the root of the number of columns, and by the norm that its file declares. Without one, rows of
few ones are shorter than they need be, and lambda is then smaller for the same model. The last rows of the table show
the cost: declare `norm` where most columns of a record are at their centre.
"""

TRANSFER = """\
## Transfer: attacks on a network (KDD Cup 99)

M parties hold 22 connections each. 43,000 connections are public, without labels. The official test file is not here:
the rows of the 10 % part that are left over are the test. That part has 494,021 rows, 80 % of them attacks, and only
145,586 are distinct. So most test rows are copies of others. At M = 20,000 there are 11,021 left.

A row has the numbers as log(1 + x), standardised by the public rows and clipped at 3 deviations, the texts' values one
by one, and a constant. It is scaled to norm 1. The local logistic regression has lambda .01. All of this was settled on
public rows.

One party's votes v on the N public rows count by s = (1/N) sum (v - 1/2) x alone. Another party in its place moves the
mean s by at most 1 / M. The published model minimises (1/N) sum log(2 cosh(w.x / 2)) - w.s + (lambda/2) |w|^2.

* `statistic`: noise in s. Lambda costs no privacy then.
* `soft`: noise in the minimum, which moves by 1 / (M lambda): half of what the paper prints.
* `vote`: the majority's votes, and noise in the minimum, which moves by 1 / lambda: again half.

**Lambda** is fixed beforehand for each mode, noise, M and epsilon, in a rehearsal on public rows whose labels are known
there. Half of them are the records of 977 parties, who vote on the others, with as much noise as for M parties. A
study needs such labels, or takes over these lambdas. *noise-free* is the transfer without noise, at its own lambda.

`indiv` is what a party has without any study. A model that is right less often is of use only to those without records.
Rows over the root of 111: as a study scales them, each column within 1. They are shorter, and the noise is the same.

`averaging` here has the party as unit: each one's weights are shrunk to a norm, chosen in the rehearsal (its "lambda").
`moments` has as its "lambda" the ridge, chosen there too. Both: one teller's noise. `histogram` asks each party for one
record, at local epsilon, scored on 5,000 rows; no teller and no public row is needed.
"""

ACTIVITY = """\
## Transfer among classes: activities (phones' accelerometers)

10,299 windows of 64 samples at 50 Hz, of 30 people and six activities. The published matrix of 561 features is not
here; the features of time and frequency are our own. 1,000 users hold 6 windows each of the 21 people in the training
part. 1,352 windows are public. The 2,947 test windows are of the 9 other people. Features are standardised, and
projected to 50 principal components, by the public windows alone. The users of one person share that person's habits.
The weight of the components, and lambda .01 of the users' models, were settled while test accuracies were seen, too. So
these figures are somewhat optimistic, for all modes alike.

A vote is 1 at one of six classes. A party in another's place changes at most two classes' votes on a row. So the mean s
moves by at most the root of 2, over M. `histogram` and `sum` have no label of six classes. Where noise drowns all, a
large lambda makes `soft` the same as `statistic`. Steps within a standard error are ties. Each mode's lambda is
rehearsed by five times as many draws: by half of them it was chosen by chance, and two ties fell the other way.
"""

ADDRESSES = """\
## Transfer with few rows: malicious addresses

The sample has 1,200 rows, 200 a day. It cannot carry M = 5,000. 66 parties hold 9 rows each of days 0 to 3; 200 rows of
those days are public; the 400 of days 4 and 5 are the test. At party level 66 parties are too few for any epsilon here.
Their models alone say "harmless" on nearly every row, so that even the transfer without noise learns the majority.
"""

CHOOSING = (
    (
        "a few parties with thousands of records each; a record is to be hidden",
        "`sum` with `moments`; with `gradient` if all answer in 60 rounds",
        ("On Adult at epsilon 1 their errors are {moments} and {gradient}, with two tellers' noise. "
         "Averaging five models has {averaged}."),
    ),
    (
        "the same, but each party is to fit on its own, and to send a few hundred numbers once",
        "`averaging`",
        ("It loses little at epsilon 1, and more below. "
         "It needs a declared minimum of records: that alone sets the noise."),
    ),
    (
        "the same, and each party wants a better model than its own",
        "`sum`, and compare first",
        "On Adult one party's own model errs in {own}. Averaging does not better it; `sum` does, by little.",
    ),
    (
        "parties of very different size",
        "`moments`; or `averaging` without the smallest",
        "The smallest party sets the noise of all. With 10 % of the records its error is {uneven}.",
    ),
    (
        "a thousand parties or more with few records and the same columns; a party is to be hidden whole",
        "`averaging` or `moments`, with the party as unit",
        ("On KDD Cup 99 with 1,000 parties at epsilon .1 they are right in {kdd_averaging} and {kdd_moments}. "
         "`transfer` is in {kdd_transfer}, one party's own model in {kdd_own}."),
    ),
    (
        "the same, but the parties' models are of different kinds, and stay with them",
        "`transfer`",
        "It asks for nothing but votes. It needs many public rows like those of the parties.",
    ),
    (
        "more than two classes",
        "`transfer`",
        "The others answer yes or no. Of six activities, with 1,000 users at epsilon 1, {activity} are right.",
    ),
    (
        "one record each, and nobody to run a teller",
        "`histogram`",
        "Each packet is private by itself. That takes many more people.",
    ),
    (
        "fewer than some hundred parties, each to be hidden whole",
        "none of them",
        "The noise is as large as all that parties say. Take the record as unit, or find more parties.",
    ),
)
"""The table for staff: the situation, the protocol, and the reason with its figures."""
