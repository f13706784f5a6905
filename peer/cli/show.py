"""How `anonml peer` shows things: for people on the terminal, for programs as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from anon import qr
from anon.accounting import Accounting, as_json, in_words
from anon.fingerprint import study_code
from anon.ldp import format_epsilon
from peer.app import PeerApp
from peer.cli.options import NO_STUDIES
from peer.consent import ConsentSheet, Policy, Question
from peer.glance import Receipt, StudyStatus
from peer.ledger import Ledger
from peer.own_data import OwnData
from peer.predict import Prediction
from peer.session import LAST
from peer.words import said


def local_time(seconds: float) -> str:
    """Unix seconds as this machine's clock shows them, with the zone."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%a %Y-%m-%d %H:%M:%S %Z")


# The consent sheet


def sheet_json(sheet: ConsentSheet, own: OwnData) -> dict[str, Any]:
    """All of a consent sheet, and what the owner's data lacks for it."""
    return {
        "study": sheet.study.hex(),
        "title": sheet.title,
        "purpose": sheet.purpose,
        "contact": sheet.contact,
        "fingerprint": sheet.fingerprint,
        "fingerprint_qr": qr.figures(study_code(sheet.study)),
        "address": sheet.address,
        "design": sheet.design,
        "admission": sheet.admission,
        "minimum_cohort": sheet.minimum_cohort,
        "packets": sheet.packets,
        "features": [_question_json(one) for one in sheet.features],
        "label": _question_json(sheet.label),
        "tables": {table.name: list(table.columns) for table in sheet.tables},
        "missing": missing_json(own),
        "rows": dict(own.rows),
        "epsilon_record": sheet.epsilon / 1e9,
        "epsilon_eq6": sheet.epsilon_eq6 / 1e9,
        "budget_before": sheet.budget_before / 1e9,
        "budget_after": sheet.budget_after / 1e9,
        "enrol_closes": sheet.enrol_closes,
        "collects": list(sheet.collects),
        "ends": sheet.ends,
        "odds": list(sheet.odds),
        "statements": list(sheet.statements),
        "objections": list(sheet.objections),
    }


def missing_json(own: OwnData) -> dict[str, list[str]]:
    """The tables and columns (as table.column) that the owner's data lacks."""
    return {"tables": list(own.missing_tables), "columns": list(own.missing_columns)}


def _question_json(question: Question) -> dict[str, str]:
    return {"name": question.name, "sentence": question.sentence, "query": question.query}


def show_sheet(sheet: ConsentSheet, own: OwnData, home: Path, queries: bool) -> None:
    """A consent sheet: who asks, what, when, at which price, and what stands against it."""
    console = Console()
    console.rule(escape(sheet.title))
    console.print(_quoted(sheet.purpose, "what it is for, in the words of who asks"))
    console.print(f"Asked by: {escape(sheet.contact)}", highlight=False)
    console.print(f"Fingerprint, to compare with a public place: [bold]{sheet.fingerprint}[/]", highlight=False)
    where = escape(sheet.address) or "one machine alone, through no network"
    console.print(f"Served to everybody at {where}; the fingerprint covers that.", highlight=False, soft_wrap=True)
    qr.show(console, study_code(sheet.study))
    table = Table("what", "in words", title="One perturbed packet about some of these, with the label")
    for question in (*sheet.features, sheet.label):
        table.add_row(escape(question.name), escape(question.sentence))
    console.print(table)
    if queries:
        _show_queries(console, sheet)
    for line in (*sheet.odds, *sheet.statements, *_times(sheet)):
        console.print(f"- {escape(line)}", highlight=False)
    _show_own(console, own)
    for line in sheet.objections:
        console.print(f"[bold red]not possible:[/] {escape(line)}", highlight=False)
    hint = "" if queries else "The queries: anonml peer look LINK --queries. "
    console.print(f"{hint}Your data: {escape(str(home))}", style="dim", highlight=False)


def _show_queries(console: Console, sheet: ConsentSheet) -> None:
    for question in (*sheet.features, sheet.label):
        console.print(_quoted(question.query, question.name))


def _quoted(text: str, title: str) -> Panel:
    """Text of several lines that somebody else wrote, in a frame: none of it can pass for a line of this program's."""
    return Panel(Text(text), title=Text(title), title_align="left")


def _times(sheet: ConsentSheet) -> tuple[str, ...]:
    first, last = map(local_time, sheet.collects)
    return (
        f"Enrolment closes {local_time(sheet.enrol_closes)}: `anonml peer run` must have run before then.",
        f"Packets leave between {first} and {last}: keep `anonml peer run` running from enrolment until then.",
        f"Results come after {local_time(sheet.ends)}.",
    )


def _show_own(console: Console, own: OwnData) -> None:
    rows = ", ".join(f"{table} {count}" for table, count in own.rows.items())
    console.print(f"- Rows in your tables that it reads: {rows or 'none'}.", highlight=False)
    for line in own.warnings:
        console.print(f"[bold yellow]missing:[/] {escape(line)}", highlight=False)
    if own.warnings:
        console.print("What is missing counts as the study's rule for missing values says.", highlight=False)


# Studies, receipts, budget


def status_json(one: StudyStatus) -> dict[str, Any]:
    """One study at a glance."""
    return {
        "study": one.study.hex(),
        "title": one.title,
        "state": str(one.state),
        "reason": one.reason,
        "reserved": one.reserved / 1e9,
        "spent": one.spent / 1e9,
        "slots": [
            {"slot": s.slot, "survey": s.survey, "status": str(s.status), "attempts": s.attempts, "send_at": s.send_at}
            for s in one.slots
        ],
    }


def show_status(peer: PeerApp) -> None:
    """All studies as a table."""
    found = peer.status()
    if not found:
        Console().print(NO_STUDIES)
        return
    table = Table("study", "title", "state", "spent", "reserved", "packets", "reason")
    for one in found:
        packets = ", ".join(str(slot.status) for slot in one.slots)
        held = (format_epsilon(one.spent), format_epsilon(one.reserved))
        table.add_row(one.study.hex()[:8], escape(one.title), str(one.state), *held, packets, escape(one.reason))
    Console().print(table)
    _show_pauses(peer, [one.study for one in found if one.state not in LAST])


def _show_pauses(peer: PeerApp, active: list[bytes]) -> None:
    everything = peer.paused_until()
    pauses = {"everything": everything} if everything else {one.hex()[:8]: peer.paused_until(one) for one in active}
    for what, until in pauses.items():
        if until is not None:
            option = "" if everything else f" --study {what}"
            Console().print(f"{what} is paused until {local_time(until)}; `anonml peer resume{option}` ends that")


def receipt_json(one: Receipt, cost: Accounting | None) -> dict[str, Any]:
    """One receipt; `says` explains the aggregator's `word`, `accounting` what the study's packets cost together."""
    return {
        "study": one.study.hex(),
        "title": one.title,
        "slot": one.slot,
        "survey": one.survey,
        "epsilon": one.epsilon / 1e9,
        "status": str(one.status),
        "word": one.word,
        "says": said(one.word),
        "accounting": as_json(cost) if cost is not None else None,
    }


def show_receipts(found: list[Receipt], costs: Mapping[bytes, Accounting | None]) -> None:
    """All receipts as a table, then what the packets of each study cost together."""
    table = Table("study", "slot", "survey", "epsilon", "status", "what the aggregator said")
    for one in found:
        cost = format_epsilon(one.epsilon)
        table.add_row(
            escape(one.title), str(one.slot), str(one.survey), cost, str(one.status), escape(said(one.word))
        )
    console = Console()
    console.print(table)
    titles = {one.study: one.title for one in found}
    for study, accounting in costs.items():
        if accounting is not None:
            console.print(f"[bold]{escape(titles[study])}[/]", highlight=False)
            for line in in_words(accounting):
                console.print(escape(line), highlight=False)


def budget_json(ledger: Ledger, policy: Policy) -> dict[str, Any]:
    """The ledger and the owner's limits."""
    return {
        "lifetime": ledger.lifetime / 1e9,
        "available": ledger.available / 1e9,
        "entries": [
            {
                "study": e.study.hex(),
                "title": e.title,
                "kind": e.kind,
                "reserved": e.reserved / 1e9,
                "spent": e.spent / 1e9,
            }
            for e in ledger.entries
        ],
        "per_study": policy.max_epsilon / 1e9,
        "minimum_cohort": policy.minimum_cohort,
    }


def show_budget(ledger: Ledger, policy: Policy) -> None:
    """What is left, the owner's limits, and what each study holds."""
    console = Console()
    left = f"[bold]{format_epsilon(ledger.available)}[/] of epsilon {format_epsilon(ledger.lifetime)} left"
    console.print(left, highlight=False)
    console.print(
        f"a single study may cost {format_epsilon(policy.max_epsilon)} (--per-study) and must have at least "
        f"{policy.minimum_cohort} people (--minimum-cohort)",
        highlight=False,
    )
    for e in ledger.entries:
        note = "" if e.kind == "pure-local" else f" (another unit: {e.kind}; not part of the sum)"
        held = f"{format_epsilon(e.spent)} spent, {format_epsilon(e.reserved)} reserved{note}"
        console.print(f"  {escape(e.title)}: {held}", highlight=False)


# Predictions


def prediction_json(one: Prediction) -> dict[str, Any]:
    """One prediction."""
    return {"who": one.who, "probability": one.probability, "threshold": one.threshold, "positive": one.positive}


def show_prediction(one: Prediction, label: str, name_who: bool, reasons: int) -> None:
    """The score beside the threshold that decides, and the `reasons` that moved it most."""
    score, threshold = told_apart(one.probability, one.threshold)
    who = f"{escape(one.who)}: " if name_who else ""
    verdict = "yes" if one.positive else "no"
    Console().print(f"{who}{escape(label)}: score {score} %, threshold {threshold} %: {verdict}", highlight=False)
    for part in sorted(one.moved_by, key=lambda part: -abs(part.amount))[:reasons]:
        Console().print(f"  {', '.join(part.features)}: {part.amount:+.2f}", highlight=False)


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Two shares as per cent, with as many of 1 to 6 decimals as it takes to see which is larger."""
    for decimals in range(1, 7):
        first, second = f"{100 * one:.{decimals}f}", f"{100 * other:.{decimals}f}"
        if first != second or one == other:
            break
    return first, second
