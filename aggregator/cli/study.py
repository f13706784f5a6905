"""`anonml study ...`: write, check and publish a study."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from aggregator.app import AggregatorApp
from aggregator.network.onion_address import onion_addresses
from aggregator.opening import DEFAULT_HOME, HomeOption
from aggregator.protocols.installed import PROTOCOLS
from aggregator.rules.lifecycle import Phase
from aggregator.study.expected import expected_of
from aggregator.study.handout import limits_to_change
from aggregator.study.status import StudyStatus
from aggregator.study.suggested_cuts import suggested_cuts
from anon.errors import Refused
from anon.kit.terminal.foreign import inline, short
from anon.kit.terminal.options import JsonOption, finished, print_json
from anon.kit.terminal.printing import Terminal, styled
from anon.kit.terminal.wiring import wiring_of
from anon.ldp import format_epsilon, odds_moved
from anon.protocols.cost_words import cost_in_words, is_local, promise_in_words
from anon.protocols.registry import charge_of, protocol_of
from anon.sharing.drafts import drafted
from anon.study import Manifest
from anon.study.given import read_given
from anon.study.schema import FILE as SCHEMA_FILE
from anon.study.translations import untranslated
from anon.text.instants import instant
from anon.transparency.fingerprint import words
from anon.wire.addresses import MOST_ADDRESSES, onion_addresses_fault

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Write, check and publish a study; try it on synthetic data."
)
StudyFile = Annotated[Path, typer.Argument(help="A study file.")]


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.toml"),
) -> None:
    """Write a commented example to start from, and beside it the schema by which editors check it as you type."""
    if file.exists():
        raise Refused(f"{file}: already exists; name another file")
    file.write_text(resources.files("aggregator.study").joinpath("study.toml").read_text("utf-8"), "utf-8")
    beside = file.with_name(SCHEMA_FILE)
    if not beside.exists():
        beside.write_text(_schema_text(), "utf-8")
    Terminal().print(f"{file} written; edit it, then `anonml study lint {file}`")


@app.command()
def schema() -> None:
    """Print the JSON Schema of study files. `#:schema FILE` in a study's first line tells editors where it is."""
    sys.stdout.write(_schema_text())


def _schema_text() -> str:
    from anon.study.schema import study_schema

    return json.dumps(study_schema(PROTOCOLS.designs), indent=1, ensure_ascii=False) + "\n"


@app.command()
def lint(
    context: typer.Context,
    file: StudyFile,
    cohort: Annotated[int | None, typer.Option(min=2, help="How many will take part; else the file's minimum.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Last year's people, one row each (CSV): they take the place of made-up ones.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a study file and its queries, and show what it would ask and cost, and whether the group is large enough.

    Nothing is published. The group is judged on made-up people, as in `study plan`.
    """
    from aggregator.study.publish import prepare

    proposal = drafted(PROTOCOLS.load_proposal(file))
    given = read_given(proposal.given, file.parent)
    manifest, _ = prepare(proposal, bytes(32), time.time(), secrets.token_bytes, secrets.randbelow, given=given)
    outlooks = [found for of in wiring_of(context).all("outlook") if (found := of(proposal, manifest, cohort, data))]
    verdict, *reasons = [line for outlook in outlooks for line in outlook.sentences()] or [""]
    _show(manifest, as_json, published=False, outlook=outlooks[0].figures() if outlooks else {}, verdict=verdict)
    if not as_json:
        said = (*untranslated(manifest), *expected_of(manifest), *suggested_cuts(manifest, cohort))
        for line in filter(None, (*reasons, limits_to_change(manifest), *map(inline, said))):
            Terminal().print(line)


@app.command()
def publish(
    file: StudyFile,
    loopback: Annotated[
        bool, typer.Option("--loopback", help="Name no onion address: nobody can join from another machine.")
    ] = False,
    address: Annotated[
        list[str] | None,
        typer.Option(help="An onion address (ADDRESS.onion:80) that leads here, by a tor of your own; up to 8."),
    ] = None,
    onions: Annotated[
        int,
        typer.Option(min=0, max=MOST_ADDRESSES, help="Name so many of this home's onion addresses; 0: all it has."),
    ] = 0,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Publish a study: from now on nothing in it can change, and its clock runs.

    It names the onion address at which everybody is served: this home's own, whose key is drawn now if there is
    none, or that of the `serve --onion --ephemeral` that runs. Peers take no other, except on this machine itself. Of
    several addresses a peer draws one for each exchange.
    """

    proposal = PROTOCOLS.load_proposal(file)
    given = read_given(proposal.given, file.parent)
    own = " ".join(address or ())
    if onions and (own or loopback):
        raise Refused("--onions counts this home's own addresses; leave it out with --address and --loopback")
    if own and (fault := "--loopback names none" if loopback else onion_addresses_fault(own)):
        raise Refused(f"--address: {fault}")

    async def work() -> tuple[Manifest, list[str]]:
        async with AggregatorApp(home) as aggregator:
            twins = [status.study.hex() for status in await aggregator.status() if _is_twin(status, proposal.title)]
            named = "" if loopback else own or onion_addresses(aggregator.home, os.urandom, onions)
            return await aggregator.create_study(proposal, named, given), twins

    manifest, twins = finished(work())
    _show(manifest, as_json, published=True)
    if lower := limits_to_change(manifest):
        Terminal(stderr=True).print(lower)
    for twin in twins:
        Terminal(stderr=True).print(
            styled(
                "[bold yellow]caution:[/] a study of this title is open already ({twin}): who joins both pays twice",
                twin=twin[:8],
            ),
        )


def _is_twin(other: StudyStatus, title: str) -> bool:
    return other.title == title and other.phase == Phase.ENROLLING


def _show(
    manifest: Manifest,
    as_json: bool,
    published: bool,
    outlook: Mapping[str, object] | None = None,
    verdict: str = "",
) -> None:
    if as_json:
        print_json(_figures(manifest) | dict(outlook or {}))
        return
    console = Terminal()
    state = "is published" if published else "can be published"
    named = f" as {manifest.study_id.hex()}" if published else ""
    console.print(styled("[bold]{title}[/] {state}", title=short(manifest.title), state=f"{state}{named}"))
    if verdict:
        console.print(styled("[bold]{verdict}[/]", verdict=verdict))
    if published:
        console.print(
            styled("fingerprint [bold]{words}[/]: put it where everyone can compare it", words=words(manifest.study_id))
        )
        where = " and ".join(manifest.addresses) or "this machine alone"
        console.print(f"served at {where}: peers take no other address", soft_wrap=True)
    local = is_local(manifest)  # amounts of sums add up as rho, which stands with the details for experts alone
    table = Table("survey", "asks", "mechanism", "m", *(("epsilon",) if local else ()), "share of its slot")
    for slot in manifest.slots:
        for row in slot.rows:
            survey = manifest.survey(row.survey)
            asks, cost = protocol_of(manifest).title(manifest, survey), format_epsilon(survey.epsilon)
            share = f"{row.weight / slot.total:.1%}"
            table.add_row(str(survey.survey), asks, survey.mechanism, str(survey.m), *((cost,) if local else ()), share)
    console.print(table)
    console.print(_cost(manifest))
    for name, at in (("enrolment closes", manifest.timetable.enrol_closes), ("results from", manifest.timetable.ends)):
        console.print(f"{name} {instant(at)}")


def _cost(manifest: Manifest) -> Text:
    packets = f"{manifest.packets} packet{'s' * (manifest.packets > 1)} per peer."
    if not is_local(manifest):
        cost, promise = cost_in_words(manifest), promise_in_words(manifest)
        return styled(
            "{packets} Each member's cost: [bold]{cost}[/]; {promise}.", packets=packets, cost=cost, promise=promise
        )
    return styled(
        "{packets} Record-level epsilon [bold]{epsilon}[/]: the odds about somebody {moved}; per-attribute (AnonML eq. "
        "6) {each}, which is not the guarantee.",
        packets=packets,
        epsilon=format_epsilon(manifest.epsilon),
        moved=odds_moved(manifest.epsilon),
        each=format_epsilon(manifest.epsilon_per_attribute),
    )


def _amounts(manifest: Manifest) -> dict[str, float]:
    if not is_local(manifest):
        return {charge_of(manifest).budget.symbol: manifest.epsilon / 1e9}
    return {"epsilon_record": manifest.epsilon / 1e9, "epsilon_eq6": manifest.epsilon_per_attribute / 1e9}


def _figures(manifest: Manifest) -> dict[str, object]:
    return {
        "study": manifest.study_id.hex(),
        "fingerprint": words(manifest.study_id),
        "address": next(iter(manifest.addresses), ""),
        "addresses": list(manifest.addresses),
        "surveys": len(manifest.surveys),
        "packets": manifest.packets,
        **_amounts(manifest),
        "enrol_closes": manifest.timetable.enrol_closes,
        "ends": manifest.timetable.ends,
    }
