"""The texts that staff hand out with a study's links: a table for a mail merge, a mail, and the limits of the links."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from itertools import count
from typing import Final

from attrs import frozen

from anon.ldp import format_epsilon
from anon.protocols.charge import LOCAL, USUAL_LIMITS, Unit
from anon.protocols.cost_words import cost_in_words, enough, in_epsilon, is_local, promise_in_words
from anon.protocols.registry import charge_of, protocol_of
from anon.protocols.tellers import presented_tellers, tellers_of
from anon.sharing.arrangement import LEAST_MEMBERS
from anon.study.features import USUAL_COHORT
from anon.study.manifest import Manifest
from anon.study.proposal import DRY_ROUND, REHEARSAL
from anon.text.instants import instant
from anon.transparency.fingerprint import words
from anon.wire.addresses import is_loopback

PLACE = "{{link}}"
"""The place of a person's own link in the mail, as programs that merge mails write a column's name."""
UNNAMED: Final = "<YOUR OFFICE>"
"""In the place of a teller's name, which `anonml teller init` refuses as one."""
_IN_TRIAL: Final = "In the trial all this passes in some minutes, with made-up people."


_EXCEL = re.compile(r"\.xlsx\b|\bExcel\b", re.IGNORECASE)


def wheel() -> str:
    """The name of the file that members install."""
    return f"anonml-{version('anonml')}-py3-none-any.whl"


def installing(manifest: Manifest) -> str:
    """The command by which members install it; with Excel's library where the study says that files are of Excel."""
    extra = "[excel]" if _EXCEL.search(manifest.data_source) else ""
    return f"pipx install './{wheel()}{extra}'"


def limits(address: str, manifest: Manifest, desk: bool = False) -> str:
    """Sentences about links to this address that would lead nowhere on other machines, with the next step; empty for
    links that work anywhere. `desk`: for a page, in whose terms the next step is."""
    if not is_loopback(address):
        return ""
    if not manifest.addresses:
        again = "for people anywhere, through Tor," if desk else "with Tor (without --loopback)"
        return (
            "These links work on this machine alone, because the study was published for this machine. For people "
            f"elsewhere, publish it again {again} and draw new links."
        )
    step = "end the desk in its terminal, start `anonml aggregator desk --onion`," if desk else (
        "stop it, start it again with --onion,"
    )
    return (
        "These links work on this machine alone, because the aggregator is not served through Tor now. For people "
        f"elsewhere, {step} and draw new links."
    )


def limits_to_change(manifest: Manifest) -> str:
    """Says of a study that a new member's limits refuse how its members can join at all; empty for others."""
    return " ".join(filter(None, (_lower_minimum(manifest.cohort.minimum), _higher_cost(manifest))))


def _lower_minimum(least: int) -> str:
    if least >= USUAL_COHORT:
        return ""
    return (
        f"A member's program refuses a group of fewer than {USUAL_COHORT}, and this one may have {least}. Before "
        f"joining, all lower their own limit with `anonml peer budget --minimum-cohort {least}`. That limit then holds "
        f"for every study: `--minimum-cohort {USUAL_COHORT}` raises it again."
    )


def _higher_cost(manifest: Manifest) -> str:
    budget, cost = charge_of(manifest).budget, charge_of(manifest).amount
    whole, most = USUAL_LIMITS.get(budget, (0, 0))
    if cost <= most:
        return ""
    unit = "" if budget.unit is Unit.PERSON else f" --unit {budget.unit}"
    kind = "" if budget == LOCAL else f" --measure {budget.measure}{unit}"
    raised = format_epsilon(enough(budget, most, cost))
    lifetime = f" --lifetime {raised}" if cost > whole else ""
    allowed, all_together = (format_epsilon(in_epsilon(budget, amount)) for amount in (most, whole))
    return (
        f"A member's program begins with limits of epsilon {allowed} for one study and {all_together} for all studies "
        f"of this kind, and this one counts as {raised} there. Before joining, all raise their own limits with "
        f"`anonml peer budget{kind} --per-study {raised}{lifetime}`."
    )


def link_table(links: Sequence[str]) -> str:
    """CSV with the columns `number`, `link` and `command` (as it is typed into a terminal), one row a person."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(("number", "link", "command"))
    writer.writerows((number, link, opening(link)) for number, link in enumerate(links, 1))
    return text.getvalue()


def opening(link: str) -> str:
    """The command that opens a link, as it is typed."""
    return f"anonml peer open '{link}'"


def _leaves(manifest: Manifest) -> str:
    if is_local(manifest):
        return f"""Your data stay on your own computer. A single noisy answer
or a few of them leave it, with a record-level epsilon of {format_epsilon(manifest.epsilon)} in all."""
    return f"""{protocol_of(manifest).summary(manifest)}
It costs {cost_in_words(manifest)}; {promise_in_words(manifest)}."""


@frozen
class TellerRequest:
    """A plan of a study, for those who are asked to be a teller.

    `key`: the aggregator's, as hex digits. `tellers`: name and address of those who are known already. `length`: from
    publishing to the report, in words; `ends`: when that would be if it were published now. `waits`: days for which the
    study waits for a teller that is away. `minimum`: the fewest members, as it was
    typed. `epsilon`: of what is published. `here`: for a trial, with tellers on the desk's own computer.
    """

    title: str
    contact: str
    key: str
    tellers: Sequence[tuple[str, str]] = ()
    length: str = ""
    ends: float = 0
    waits: int = 0
    minimum: str = ""
    epsilon: str = ""
    here: bool = False

    def mails(self) -> list[tuple[str, str]]:
        """Whom each mail is for, and its text; one mail for all, with nobody's name, where all type the same lines."""
        if not self.here:
            return [("", self._real())]
        return [(name, self._trial(place)) for place, (name, _) in enumerate(self._seats())]

    def _real(self) -> str:
        return f"""Subject: Will you be a teller for our study?

Hello,

we plan a study: {_ended(self.title.strip())}
We want to see no student's answer, so somebody else has to add them up.
Will you be one of the tellers? You need a computer with Linux that stays on
until the study is over, and no knowledge of statistics. You will see no names
and no answers. If you are our data protection officer in person, please
decline: you supervise this, and so should not carry it out (GDPR, Art. 38(6)).
A trial does not count: its people are made up.

{self._plan()}
Students' privacy rests on one of you being honest: you give your teller's
folder to nobody, not to us either, and you make no backup of it.

1. Type the first line, and tell the other tellers the number that it prints.
   All of you must have the same one. Then install the program from the file that we give
   you, and Tor (apt install pipx tor):
   sha256sum {wheel()}
   pipx install './{wheel()}'
2. Make your teller. Write the name by which students know you:
   anonml teller init --name {_quoted(UNNAMED)}
3. Let it serve us, and leave it running. Our key's words are
   {words(bytes.fromhex(self.key))}.
   Before you type the next line, compare them with us by telephone, at a number
   that you do not have from a mail: whoever forges one changes key and words alike.
   anonml teller allow {self.key}
   anonml teller serve
4. In a second terminal: send us the first two lines that this prints, its name
   and its address, and until when you can keep it running:
   anonml teller words
5. Put its twelve words on a page of your own, and tell us where that is. Do
   not send us the words: students compare them before they say yes.

If you run a teller already, keep it: of these lines type the first of step 1,
to compare its number, and the first of step 3.

{self._tries()}
The page "Run a teller" of the program's documentation has more.
Questions: {self.contact.strip()}
"""

    def _trial(self, place: int) -> str:
        seats, known = self._seats(), dict(self.tellers)
        name, port = seats.pop(place)
        others = " and ".join(other if other in known else "the other teller" for other, _ in seats)
        own, home = name if name in known else UNNAMED, f"--home ~/teller-{place + 1}"
        typed = "" if name in known else f"In place of {UNNAMED} write the name by which students know you.\n"
        return f"""Subject: A trial with tellers on one computer

Hello,

we plan a study: {_ended(self.title.strip())}
This is for a trial of it on the desk's own computer: the one that our page
for staff runs on. Tellers there protect nobody, since who uses that computer
can read the folders of all of them. For the study itself each teller gets a
computer of its own, and we ask again. If you are our data protection officer
in person, please decline then: you supervise the study, and so should not carry
it out (GDPR, Art. 38(6)). A trial does not count: its people are made up.

{self._plan()}
On that computer, where the program is installed, type these lines. They
are for {name} alone: {others} {"has a mail of its own" if len(seats) == 1 else "have mails of their own"}.
{typed}
1. anonml teller init --name {_quoted(own)} --loopback --port {port} {home}
2. anonml teller allow {self.key} {home}
   Our key's words are {words(bytes.fromhex(self.key))}.
3. anonml teller serve {home}
   Leave it running, and go on in a second terminal.
4. anonml teller words {home}
   We paste the first two lines that it prints into the form.

{self._tries()}
The page "Run a teller" of the program's documentation has more.
Questions: {self.contact.strip()}
"""

    def _seats(self) -> list[tuple[str, str]]:
        """Name and port of each teller of a trial: those in the form, and as many more as make two."""
        known = [(name, address.rpartition(":")[2]) for name, address in self.tellers if is_loopback(address)]
        free = (str(port) for port in count(8761) if str(port) not in {port for _, port in known})
        ordinals = ("the first teller", "the second teller")
        return known + [(name, next(free)) for name in ordinals[len(known) :]]

    def _plan(self) -> str:
        """Who is responsible, the tellers and their places, how long, how many, and the cost: as far as it is known."""
        lines = [f"Responsible for the study: {self.contact.strip()}"]
        lines += ["So far these are tellers:"] if self.tellers else []
        lines += [f"   {name}, whose program is at {address}" for name, address in self.tellers]
        if not self.tellers and not self.here:
            lines.append("There will be two to four tellers, each run by somebody else. We tell you who.")
        lines += ["", *self._times()]
        if self.minimum.isdecimal():
            fewest = max(LEAST_MEMBERS, -(-int(self.minimum) // 2))
            lines.append(f"It begins if at least {self.minimum} people enrol.")
            lines.append(f"A sum is made of at least {fewest} of them.")
        lines += [f"Its epsilon is {self.epsilon}, which members' programs check."] if self.epsilon else []
        return "\n".join(lines) + "\n"

    def _times(self) -> list[str]:
        if not self.length:
            return [_IN_TRIAL if self.here else "We will tell you how long your teller has to run."]
        waits = f"If a teller is away then, the others wait for it, for {self.waits} days at most."
        if self.here:
            return [
                f"As it is planned now, the study takes {self.length} from publishing to its report.",
                _IN_TRIAL,
                waits,
            ]
        return [
            f"From publishing to its report the study takes {self.length}. Please keep",
            "your teller running all that time.",
            waits,
            f"If we published it now, it would end {instant(self.ends)}.",
            "We will tell you the day before we publish it.",
        ]

    def _tries(self) -> str:
        return f"""Before any student is asked we may try it with you. Your teller then shows one
of these, by its title, and you have nothing to do but to let it run:
- "{DRY_ROUND}":
  the sum of 3 made-up members, in about a minute. It costs nobody anything. Your
  teller shows it with epsilon 1. We see its number and words on our page, too.
- "{REHEARSAL}..." and the study's title: made-up people live the whole study,
  by a clock of our own. Your teller shows its dates, days ahead, and yet it is
  over in minutes.
Both titles are our word alone. Your teller says where dates do not hold, since
our clock runs ahead. If it says so of another study, tell us and the others."""


def teller_notice(manifest: Manifest) -> str:
    """A mail to the tellers of a study that is published; empty for a study without any."""
    arrangement = tellers_of(manifest)
    if arrangement is None:
        return ""
    tellers, study = ", ".join(teller.name for teller in presented_tellers(manifest)), manifest.study_id.hex()[:8]
    timetable = manifest.timetable
    return f"""Subject: The study is published: {manifest.title}

Hello,

your teller is asked to add up this study: {_ended(manifest.title)}
Its words: {words(manifest.study_id)}
`anonml teller status` shows the same words, with --home if you used it. Its tellers are {tellers}.
Compare the words with the others, since we could have shown each of you another study. If they differ, tell all
of them and us. Your teller serves meanwhile. If nobody has answered the day before enrolment ends, compare the
words with a member's, or with a page that members read. If you could compare them with nobody, you may leave the
study until enrolment ends, and nobody has sent anything by then: stop your teller, and type
   anonml teller refuse {study}

Enrolment ends {instant(timetable.enrol_closes)}.
Answers come until {instant(manifest.windows[-1].closes)}.
Please keep your teller running until its status says "over". That is at
{instant(timetable.ends)} if every teller is there. If one is away, the others
wait for it, at the latest until {instant(manifest.sums_until)}.
It begins if at least {manifest.cohort.minimum} people enrol, and a sum is made of at least {arrangement.minimum}.
Its cost is {cost_in_words(manifest)}.
"""


def _quoted(name: str) -> str:
    """A name as it is typed into a shell, in double quotes, so that one that is typed in its place may have a '."""
    return shlex.quote(name) if set(name) & set('"$`\\!') else f'"{name}"'


def _ended(title: str) -> str:
    return title if title.endswith(("?", "!", ".")) else f"{title}."


def _words_of_tellers(manifest: Manifest) -> str:
    named = [
        f"   {teller.name} (program at {teller.address}):\n   {teller.words}" for teller in presented_tellers(manifest)
    ]
    head = "4. Compare each teller's words with those on a page of the teller's own:"
    return "\n".join([head, *named, ""]) if named else ""


def mail(manifest: Manifest, link: str = PLACE) -> str:
    """A mail to those who are asked; `link` is the one for all, or the place of each person's own."""
    if manifest.cohort.admission == "invite":
        whose = "This link is yours alone and admits one person:"
    elif manifest.cohort.admission == "allow-list":
        whose = "This link admits those on our list:"
    else:
        whose = "This link is for everybody:"
    lower = f"   {limit}\n" if (limit := limits_to_change(manifest)) else ""
    return f"""Subject: {manifest.title}

Hello,

we ask you to take part in a study: {_ended(manifest.title)}

{manifest.purpose.strip()}

Taking part is voluntary. {_leaves(manifest)} You see everything
before you decide. Enrolment closes {instant(manifest.timetable.enrol_closes)}.

1. Install the program from the file that we give you:
   {installing(manifest)}
{lower}2. {whose}
   {opening(link)}
3. Compare the study's fingerprint with these words before you say yes:
   {words(manifest.study_id)}
{_words_of_tellers(manifest)}
Questions, or a security fault that you found: {manifest.contact}
"""
