"""Commands about what is the owner's own: data, budget, predictions, passphrase, copies of the home."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import evolve
from rich.console import Console
from rich.markup import escape

from anon.errors import Malformed, Refused
from anon.invite import Invite, parse_invite
from anon.ldp import nano
from peer.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    RouteOption,
    existing_home,
    finished,
    home_of,
    open_peer,
    pick,
    print_json,
    routes_of,
    secret,
)
from peer.cli.show import budget_json, prediction_json, show_budget, show_prediction
from peer.client import AggregatorClient
from peer.home import PeerHome

MOST_REASONS = 5


def import_data(
    file: Annotated[Path, typer.Argument(help="A file, a folder or an archive; --preview says what it is.")],
    table: Annotated[str | None, typer.Option(help="Name of the table; the format's or the file's by default.")] = None,
    append: Annotated[bool, typer.Option(help="Add to the table instead of replacing it.")] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what would be imported.")] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Copy a file of yours into your own tables. They stay on this machine.

    CSV, TSV, JSON Lines, JSON lists, SQLite, Parquet (an extra), edX tracking logs, Moodle logs (CSV or JSON), Google
    Takeout's activity (JSON or HTML, in any language); also as gzip, zip, tar, or a folder.
    """
    from peer.cli.importing import preview_json, run_import, show_preview, show_summary, summary_json

    try:
        if preview:
            from peer.data.preview import preview as look

            seen = look(file, table=table)
            print_json(preview_json(seen)) if as_json else show_preview(seen)
            return
        summary = run_import(home_of(home).data_path, file, table, append)
    except (Malformed, Refused) as error:
        raise type(error)(f"{file}: {error}") from None
    print_json(summary_json(summary)) if as_json else show_summary(summary)


def tables(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Your tables and their columns."""
    from peer.data.sandbox import plain_tables_of

    found = plain_tables_of(existing_home(home).data_path)
    if as_json:
        print_json({name: list(columns) for name, columns in found.items()})
        return
    for name, columns in found.items():
        Console().print(f"[bold]{name}[/]: {', '.join(columns)}", highlight=False)
    if not found:
        Console().print("no tables yet: `anonml peer import FILE`")


def budget(
    lifetime: Annotated[float | None, typer.Option(help="Set your lifetime budget (epsilon over all studies).")] = None,
    per_study: Annotated[float | None, typer.Option(help="Set the most epsilon a single study may cost.")] = None,
    minimum_cohort: Annotated[int | None, typer.Option(help="Set the fewest people you want to hide among.")] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Your one lifetime budget: what is left, what each study holds of it, and your limits for a single study."""
    peer = open_peer(home)
    changes: dict[str, Any] = {}
    if lifetime is not None:
        changes["lifetime"] = nano(lifetime)
    if per_study is not None:
        changes["max_epsilon"] = nano(per_study)
    if minimum_cohort is not None:
        changes["minimum_cohort"] = minimum_cohort
    if changes:
        peer.set_policy(evolve(peer.policy(), **changes))
    ledger, policy = peer.budget(), peer.policy()
    print_json(budget_json(ledger, policy)) if as_json else show_budget(ledger, policy)


def predict(
    source: Annotated[str, typer.Argument(help="An invite link, a model.json, or the id of a study you joined.")],
    people: Annotated[Path | None, typer.Option(help="A CSV of people, instead of you; one row each.")] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that tells people apart, when they have several rows.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the predictions of --people to this new CSV.")] = None,
    as_of: Annotated[int | None, typer.Option(help="Unix time that the queries count as now.")] = None,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """What a published model says of you, or of people in a file. Computed here; nothing leaves."""
    from peer import predict as local

    if output is not None:
        _demand_new(output)
    instant = int(time.time()) if as_of is None else as_of
    if source.endswith(".json") or Path(source).is_file():
        model = local.load_model(Path(source))
    else:
        routes = routes_of(route, home)
        model = finished(local.fetch_model(AggregatorClient(_invite_of(source, home), routes)), routes)
    if people is None:
        data = existing_home(home).data_path
        for line in local.unfit(model, data):
            _warn(f"{line}; it counts as missing. `anonml peer import FILE --table TABLE`")
        predictions = iter([local.predict_own(model, data, instant)])
    else:
        predictions = local.predict_people(model, people, person, instant)
    if doubt := local.caution(model):
        Console(stderr=True).print(f"[bold yellow]caution:[/] {escape(doubt)}", highlight=False)
    if output is not None:
        Console().print(f"{local.write_predictions(predictions, output)} predictions written to {output}")
        return
    found = list(predictions)
    if as_json:
        print_json([prediction_json(one) for one in found])
        return
    for one in found:
        show_prediction(one, model.label.name, people is not None, MOST_REASONS if people is None else 0)


def _warn(message: str) -> None:
    Console(stderr=True).print(f"[bold yellow]missing:[/] {escape(message)}", highlight=False)


def _demand_new(file: Path) -> None:
    """Raises `Refused` unless a file can be made there."""
    if file.exists():
        raise Refused(f"{file}: exists already; name a new file")
    if not file.parent.is_dir():
        raise Refused(f"{file.parent}: there is no such folder; make it, or name a file elsewhere")


def _invite_of(source: str, home: Path) -> Invite:
    if source.startswith("anonml://"):
        return parse_invite(source)
    peer = open_peer(home)
    return peer.store.study(pick(peer, source)).invite


def passphrase(home: HomeOption = DEFAULT_HOME) -> None:
    """Put your studies' secrets under a passphrase, or change it: the old one is asked for first.

    ANONML_PASSPHRASE is the one in force, ANONML_NEW_PASSPHRASE the new one; what is not set is asked for.
    """
    peer = open_peer(home)
    chosen = os.environ.get("ANONML_NEW_PASSPHRASE") or _first_passphrase(home) or _typed_twice()
    peer.set_passphrase(chosen)
    Console().print("set; it is asked for from now on, and cannot be recovered")


def _first_passphrase(home: Path) -> str:
    return "" if PeerHome(home).settings().salt else os.environ.get("ANONML_PASSPHRASE", "")


def _typed_twice() -> str:
    chosen = secret("new passphrase: ")
    if secret("once more: ") != chosen:
        raise Refused("the two differ; nothing was changed, try again")
    return chosen


def backup(
    file: Annotated[Path, typer.Argument(help="A new file.")],
    final: Annotated[bool, typer.Option(help="Close this home for good: you move to another machine.")] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write everything of this peer into one file. Keep it secret: it holds your data."""
    from peer.backup import backup as write_backup

    _demand_new(file)
    fixed = write_backup(existing_home(home), file, final)
    Console().print(f"written to {file}" + ("; this home is closed" if final else ""))
    if fixed:
        studies = "1 study answers" if fixed == 1 else f"{fixed} studies answer"
        Console().print(f"{studies} from your data as they are now: what you import later does not move what is sent")


def restore(
    file: Annotated[Path, typer.Argument(help="What `backup` wrote.")], home: HomeOption = DEFAULT_HOME
) -> None:
    """Restore into a directory that is empty. No budget is refilled, and nothing is answered twice."""
    from peer.backup import restore as read_backup

    result = read_backup(home_of(home), file, time.time())
    Console().print(f"restored into {home}")
    if result.aggregator:
        Console().print("its aggregator too: serve it here only, and nowhere else any more", highlight=False)
    if result.barred:
        Console().print(f"{result.barred} studies release nothing more: packets unknown to the backup may have left")
