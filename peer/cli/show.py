"""How `anonml peer` shows things: for people on the terminal, for programs as JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from rich.table import Table

from anon.kit.terminal.foreign import Foreign, framed, inline, short
from anon.kit.terminal.options import local_time
from anon.kit.terminal.printing import Terminal, styled
from anon.protocols.charge import LOCAL, Charge
from anon.protocols.cost_words import Amount, both, epsilon_of, with_odds
from anon.study.translations import wording
from anon.text.foreign import Quoted, paragraphs
from anon.text.sentences import joined, listed, say
from anon.transparency.fingerprint import study_code
from anon.wire.reply_sentences import reply_sentence
from peer.cli.amounts import figure, parts
from peer.cli.coming import SET_ASIDE, coming
from peer.cli.steps import with_command
from peer.cli.tellers import served, show_teller
from peer.opening import NO_STUDIES
from peer.rules.consent import ConsentQuestion, ConsentSheet
from peer.rules.letters_words import about_letters
from peer.rules.lifecycle import LAST
from peer.rules.packet_lifecycle import Status
from peer.rules.promise import budget_change, per_attribute
from peer.rules.tellers import other_words
from peer.store.summaries import Receipt, StudyStatus
from peer.view import HomeView

if TYPE_CHECKING:
    from anon.accounting.statement import Accounting
    from peer.data.readiness import OwnData
    from peer.predict import Prediction

# The consent sheet


def sheet_json(sheet: ConsentSheet, own: OwnData) -> dict[str, Any]:
    """All of a consent sheet, and what the owner's data lacks for it."""
    from anon.kit.terminal import qr

    return {
        "study": sheet.study.hex(),
        "title": sheet.title,
        "language": sheet.title.language,
        "purpose": sheet.purpose,
        "contact": sheet.contact,
        "data_source": sheet.data_source,
        "fingerprint": sheet.fingerprint,
        "fingerprint_qr": qr.figures(study_code(sheet.study)),
        "address": next(iter(sheet.addresses), ""),
        "addresses": list(sheet.addresses),
        "design": sheet.design,
        "admission": sheet.admission,
        "minimum_cohort": sheet.minimum_cohort,
        "packets": sheet.packets,
        "tellers": [attrs.asdict(teller) for teller in sheet.tellers],
        "features": [_question_json(feature) for feature in sheet.features],
        "label": _question_json(sheet.label),
        "tables": {table.name: list(table.columns) for table in sheet.tables},
        "missing": missing_json(own),
        "uncounted": list(own.uncounted),
        "few_records": list(own.few),
        "rows": dict(own.rows),
        "charge": charge_json(sheet.charge),
        "epsilon": epsilon_of(sheet.manifest) / 1e9,
        "epsilon_record": sheet.epsilon / 1e9,
        "epsilon_eq6": sheet.epsilon_eq6 / 1e9,
        "budget_before": sheet.budget_before / 1e9,
        "budget_after": sheet.budget_after / 1e9,
        "enrol_closes": sheet.enrol_closes,
        "collects": list(sheet.collects),
        "ends": sheet.ends,
        "odds": list(sheet.odds),
        "statements": list(map(with_command, sheet.statements)),
        "objections": list(map(with_command, sheet.objections)),
    }


def charge_json(charge: Charge) -> dict[str, Any]:
    """A study's cost, with all that gives its amount a meaning."""
    return {
        "measure": charge.measure,
        "amount": charge.amount / 1e9,
        "unit": charge.unit,
        "neighbours": charge.neighbours,
        "condition": charge.condition,
    }


def is_closed(sheet: ConsentSheet) -> bool:
    """True if enrolment has closed by this machine's clock."""
    return time.time() >= sheet.enrol_closes


def closed(sheet: ConsentSheet) -> str:
    """The sentence's end for a study whose enrolment has closed."""
    return f"closed: enrolment ended {local_time(sheet.enrol_closes)}. Ask staff for another study"


def languages_line(sheet: ConsentSheet) -> str:
    """The languages of the study's own texts, where it has more than one; `--language` chooses."""
    study = sheet.manifest
    if not study.texts:
        return ""
    others = ", ".join(text.language for text in study.texts)
    fallen = sheet.title.language != study.language and study.language in wording(study, sheet.title.language).languages
    rest = f"; what is not there in {sheet.title.language} is told in {study.language}" if fallen else ""
    return f"Written in {study.language}, and by those who ask in: {others} (--language){rest}."


def missing_json(own: OwnData) -> dict[str, list[str]]:
    """The tables and columns (as table.column) that the owner's data lacks."""
    return {"tables": list(own.missing_tables), "columns": list(own.missing_columns)}


def _question_json(question: ConsentQuestion) -> dict[str, str]:
    found = {"name": question.name, "sentence": question.sentence, "query": question.query}
    return found | ({"expects": question.expects} if question.expects else {})


def show_sheet(
    sheet: ConsentSheet,
    own: OwnData,
    home: Path,
    queries: bool,
    code: bool = True,
    member: StudyStatus | None = None,
) -> None:
    """A consent sheet: who asks, what, when, at which price, and what stands against it; `code` draws its QR code. To a
    `member` the cost is told as it is held, and nothing stands against a yes that was given."""
    from anon.kit.terminal import qr

    console = Terminal()
    console.rule("A study asks you")
    console.print(framed(sheet.title, "its title, in the words of who asks"))
    console.print(framed(paragraphs(sheet.purpose), "what it is for, in the words of who asks"))
    console.print(framed(sheet.contact, "who asks, in their own words"))
    if about := languages_line(sheet):
        console.print(about, soft_wrap=True)
    if sheet.data_source:
        console.print(framed(paragraphs(sheet.data_source), "where your file comes from, in the words of who asks"))
    fingerprint = styled("Fingerprint, to compare with a public place: [bold]{words}[/]", words=sheet.fingerprint)
    console.print(fingerprint, soft_wrap=True)
    console.print(f"{served(sheet.addresses)}; the fingerprint covers that.", soft_wrap=True)
    if code:
        qr.show(console, study_code(sheet.study))
    about = "One perturbed packet about some of these, with the label"
    if sheet.charge.budget != LOCAL:
        about = "Exact numbers computed from these leave in sealed shares"
    if about_letters(sheet.manifest):
        about = "Texts and letters that leave are computed from these"
    table = Table("what", "in words", title=about)
    for question in (*sheet.features, sheet.label):
        table.add_row(Foreign(question.name), Foreign(question.sentence, lines=True))
    console.print(table)
    for question in sheet.features:
        if question.expects:
            console.print(f"- {inline(question.expects)}")
    if queries:
        _show_queries(console, sheet)
    for teller in sheet.tellers:
        show_teller(console, teller)
    moved = budget_change(sheet.budget_before, sheet.budget_after)
    warned = [other_words(changed) for changed in sheet.tellers if changed.earlier]
    passed_over = {per_attribute(sheet.epsilon_eq6), *warned, *([moved] if member is not None else ())}
    stated = [line for line in sheet.statements if line not in passed_over]
    cost = with_odds(Amount(sheet.charge.budget, sheet.charge.amount, sheet.manifest))
    console.print(styled("[bold]It costs you {cost}.[/]", cost=inline(cost)))
    for line in (*map(with_command, (sheet.summary, *sheet.odds, *stated)), *_times(sheet)):
        console.print(f"- {inline(line)}")
    _show_own(console, own)
    if member is not None:
        held = parts(*map(member.held, (member.spent, member.reserved, member.spent + member.reserved)))
        console.print(f"You take part in this study. It holds {held}.")
    for line in sheet.objections if member is None else ():
        console.print(styled("[bold red]not possible:[/] {why}", why=inline(with_command(line))))
    hint = "" if queries else "The queries: `anonml peer look LINK --queries`. "
    console.print(f"{hint}Your data: {inline(str(home))}", style="dim")


def _show_queries(console: Terminal, sheet: ConsentSheet) -> None:
    for question in (*sheet.features, sheet.label):
        console.print(framed(question.query, question.name))


def _times(sheet: ConsentSheet) -> tuple[str, ...]:
    first, last = map(local_time, sheet.collects)
    return (
        f"Enrolment closes {local_time(sheet.enrol_closes)}: `anonml peer run` must have run before then.",
        f"Packets leave between {first} and {last}: keep `anonml peer run` running from enrolment until then.",
        f"Results come after {local_time(sheet.ends)}.",
    )


def _show_own(console: Terminal, own: OwnData) -> None:
    counted = (say("{table} {count}", table=Quoted(table), count=count) for table, count in own.rows.items())
    console.print(f"- Rows in your tables that it reads: {inline(joined(counted, ', ')) or 'none'}.")
    for word, line in [*(("missing", one) for one in own.warnings), *(("few records", one) for one in own.few)]:
        console.print(styled("[bold yellow]{word}:[/] {line}", word=word, line=inline(line)))
    if own.uncounted:
        named = inline(listed(own.uncounted))
        console.print(styled("[bold yellow]missing:[/] your tables give no value that counts for {named}", named=named))
    for several in own.people:
        column = inline(Quoted(f"{several.table}.{several.column}"))
        told = f"{column} names several people ({inline(several.listed)}): every row counts as yours"
        step = f"`anonml peer import FILE --table {several.table} --person {several.column}=YOU` keeps only yours"
        console.print(styled("[bold yellow]several people:[/] {told}; {step}", told=told, step=step), soft_wrap=True)
    if own.warnings or own.uncounted:
        console.print("What is missing counts as the study's rule for missing values says.")


# Studies, receipts


def status_json(status: StudyStatus) -> dict[str, Any]:
    """One study at a glance."""
    return {
        "study": status.study.hex(),
        "title": status.title,
        "state": str(status.state),
        "reason": status.reason,
        "epsilon_reserved": status.held(status.reserved).epsilon / 1e9,
        "epsilon_spent": status.held(status.spent).epsilon / 1e9,
        "measure": status.budget.measure,
        "reserved": status.reserved / 1e9,
        "spent": status.spent / 1e9,
        "slots": [
            {"slot": s.slot, "survey": s.survey, "status": str(s.status), "attempts": s.attempts, "send_at": s.send_at}
            for s in status.slots
        ],
    }


def show_status(peer: HomeView) -> None:
    """All studies as a table."""
    statuses = peer.status()
    if not statuses:
        Terminal().print(NO_STUDIES)
        return
    table = Table("study", "title", "state", "spent", "reserved", "packets", "reason")
    for status in statuses:
        packets = ", ".join(str(slot.status) for slot in status.slots)
        amounts = (figure(status.held(status.spent)), figure(status.held(status.reserved)))
        table.add_row(
            status.study.hex()[:8],
            Foreign(status.title),
            str(status.state),
            *amounts,
            packets,
            Foreign(status.reason, lines=True),
        )
    Terminal().print(table)
    for status in statuses:
        if told := coming(peer.store.study(status.study), time.time()):
            Terminal().print(f"{status.study.hex()[:8]} {status.state}: {told}", soft_wrap=True)
        if (held := status.held(status.spent + status.reserved)).amount:
            Terminal().print(f"{status.study.hex()[:8]} {with_odds(held)}", soft_wrap=True)
    if any(slot.status is Status.QUEUED for status in statuses for slot in status.slots):
        Terminal().print(SET_ASIDE)
    if peer.evidence():
        Terminal().print("a proof against an aggregator is kept; `anonml peer evidence --export FILE` writes it")
    _show_pauses(peer, [shown.study for shown in statuses if shown.state not in LAST])


def _show_pauses(peer: HomeView, active: list[bytes]) -> None:
    everything = peer.paused_until()
    pauses = (
        {"everything": everything} if everything else {study.hex()[:8]: peer.paused_until(study) for study in active}
    )
    for what, until in pauses.items():
        if until is not None:
            option = "" if everything else f" --study {what}"
            Terminal().print(f"{what} is paused until {local_time(until)}; `anonml peer resume{option}` ends that")


def receipt_json(receipt: Receipt, cost: Accounting | None) -> dict[str, Any]:
    """One receipt; `says` explains the aggregator's `word`, `accounting` what the study's packets cost together."""
    from anon.accounting.statement import as_json

    return {
        "study": receipt.study.hex(),
        "title": receipt.title,
        "slot": receipt.slot,
        "survey": receipt.survey,
        "epsilon": receipt.cost.epsilon / 1e9,
        "measure": receipt.cost.budget.measure,
        "amount": receipt.cost.amount / 1e9,
        "status": str(receipt.status),
        "word": receipt.word,
        "says": reply_sentence(receipt.word),
        "accounting": as_json(cost) if cost is not None else None,
    }


def show_receipts(receipts: list[Receipt], costs: Mapping[bytes, Accounting | None]) -> None:
    """All receipts as a table, then what the packets of each study cost together."""
    from anon.accounting.statement import for_owner

    table = Table("study", "slot", "survey", "epsilon", "status", "what the aggregator said")
    for receipt in receipts:
        table.add_row(
            Foreign(receipt.title),
            str(receipt.slot),
            str(receipt.survey),
            figure(receipt.cost),
            str(receipt.status),
            Foreign(reply_sentence(receipt.word)),
        )
    console = Terminal()
    console.print(table)
    for study, accounting in costs.items():
        sent = [receipt for receipt in receipts if receipt.study == study]
        whole = both(*(receipt.cost for receipt in sent))
        console.print(styled("[bold]{title}[/]: {cost}", title=short(sent[0].title), cost=inline(with_odds(whole))))
        for line in for_owner(accounting) if accounting is not None else ():
            console.print(inline(line))


# Predictions


def prediction_json(prediction: Prediction) -> dict[str, Any]:
    """One prediction; `value` is there where the model predicts a number."""
    told = {
        "who": prediction.who,
        "probability": prediction.probability,
        "threshold": prediction.threshold,
        "positive": prediction.positive,
    }
    return told if prediction.value is None else told | {"value": prediction.value}


def show_prediction(prediction: Prediction, label: str, name_who: bool, reasons: int) -> None:
    """The score beside the threshold that decides, or a predicted number, and the `reasons` that moved it most; without
    an answer, no reason."""
    from peer.predict import distinct_digits

    who = f"{short(prediction.who)}: " if name_who else ""
    if prediction.value is not None:
        Terminal().print(f"{who}{short(label)}: {prediction.value:.6g}")
    elif prediction.positive is None:
        Terminal().print(f"{who}{short(label)}: no answer")
        return
    else:
        score, threshold = distinct_digits(prediction.probability, prediction.threshold)
        verdict = "yes" if prediction.positive else "no"
        Terminal().print(f"{who}{short(label)}: score {score} %, threshold {threshold} %: {verdict}")
    for part in sorted(prediction.moved_by, key=lambda part: -abs(part.amount))[:reasons]:
        Terminal().print(f"  {short(', '.join(part.features))}: {part.amount:+.2f}")


