"""Commands about what is the owner's own: data, budget, predictions, passphrase, copies of the home."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from attrs import evolve

from anon.errors import AnonmlError, Malformed, Refused
from anon.kit.terminal.foreign import inline
from anon.kit.terminal.options import JsonOption, finished, print_json
from anon.kit.terminal.printing import Terminal, styled
from anon.kit.terminal.progress import on_one_line
from anon.ldp import nano
from anon.machine import environment
from anon.protocols.charge import LOCAL, Budget, Measure, Unit
from anon.protocols.cost_words import in_budget
from anon.wire.invite import Invite, parse_invite
from peer.cli.amounts import budget_json, show_budget
from peer.cli.show import prediction_json, show_prediction
from peer.opening import (
    DEFAULT_HOME,
    HomeOption,
    RouteOption,
    agreed,
    existing_home,
    home_of,
    open_peer,
    open_view,
    pick,
    routes_of,
    secret,
)
from peer.rules.consent import Policy
from peer.rules.durations import seconds_of
from peer.rules.limits import BudgetLimit, amount_of, fewer_demanded, with_limit
from peer.store.home import PeerHome
from peer.store.summaries import parts_of

if TYPE_CHECKING:
    from peer.network.client import Hold

MOST_REASONS = 5


def import_data(
    file: Annotated[Path, typer.Argument(help="A file, a folder or an archive; --preview says what it is.")],
    table: Annotated[str | None, typer.Option(help="Name of the table; the format's or the file's by default.")] = None,
    append: Annotated[
        bool,
        typer.Option("--append/--replace", help="Add to the table, or put the rows in its place, as without either."),
    ] = False,
    column: Annotated[
        list[str] | None, typer.Option(help="NAME=COLUMN: what a study calls NAME is COLUMN in the file. Repeat it.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN=VALUE", help="COLUMN=VALUE: take only the rows of one person, such as user=ann."),
    ] = None,
    numbers: Annotated[
        list[str] | None,
        typer.Option(help="COLUMN=HOW: numbers are written point, decimal (1,5), thousands (1,234), or are text."),
    ] = None,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="All rows are yours, whatever names stand in them.")
    ] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what would be imported.")] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Copy a file of yours into your own tables. They stay on this machine.

    CSV, TSV, JSON Lines, JSON lists, SQLite, Parquet and Excel (extras), edX tracking logs, Moodle logs, Google
    Takeout's activity (JSON or HTML, in any language); text files also as gzip, zip, tar, or a folder.
    """
    from peer.cli.data import (
        choices_of,
        preview_json,
        run_import,
        show_preview,
        show_summary,
        summary_json,
        with_values,
        yours,
    )
    from peer.data.choices import NoSuchPerson

    choices = choices_of(column or [], person, numbers or [])
    try:
        if preview:
            from peer.data.preview import preview as look

            seen = look(file, table=table, choices=choices)
            print_json(preview_json(seen)) if as_json else show_preview(seen)
            return
        if not (person or all_rows):
            choices = yours(file, table, choices, asks=not as_json)
        summary = run_import(home_of(home).data_path, file, table, append, choices)
        summary = evolve(summary, notes=(*summary.notes, *_unread(home, summary.table)))
    except NoSuchPerson as error:
        raise Refused(with_values(f"{file}: {error}", file, table, choices)) from None
    except (Malformed, Refused) as error:
        raise type(error)(f"{file}: {error}") from None
    print_json(summary_json(summary)) if as_json else show_summary(summary)


def _unread(home: Path, imported: str) -> list[str]:
    """A note where no study reads what was imported. It is imported all the same in a home whose studies cannot be
    read."""
    from peer.data.readiness import unread_of

    try:
        with closing(open_view(home)) as view:
            return [told for told in [unread_of(imported, view.tables_read())] if told]
    except AnonmlError:
        return []


def tables(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Your tables and their columns."""
    from anon.queries.sandbox import plain_tables_of

    tables = plain_tables_of(existing_home(home).data_path)
    if as_json:
        print_json({name: list(columns) for name, columns in tables.items()})
        return
    for name, columns in tables.items():
        Terminal().print(styled("[bold]{name}[/]: {columns}", name=name, columns=", ".join(columns)))
    if not tables:
        Terminal().print("no tables yet: `anonml peer import FILE`")


def budget(
    lifetime: Annotated[float | None, typer.Option(help="Set your lifetime budget (epsilon over all studies).")] = None,
    per_study: Annotated[float | None, typer.Option(help="Set the most epsilon a single study may cost.")] = None,
    minimum_cohort: Annotated[int | None, typer.Option(help="Set the fewest people you want to hide among.")] = None,
    minimum_window: Annotated[
        str | None, typer.Option(help="Set the shortest window to send in (30s, 10m, 2h, 0).")
    ] = None,
    measure: Annotated[Measure, typer.Option(help="The measure: pure-local, pure-central or zcdp.")] = Measure.LOCAL,
    unit: Annotated[Unit, typer.Option(help="The unit of privacy: person or record.")] = Unit.PERSON,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Your lifetime budgets: what is left, what each study holds of them, and your limits for a single study."""
    peer = open_peer(home)
    changes: dict[str, Any] = {}
    asked = Budget(measure, unit)
    if asked != LOCAL and (lifetime is not None or per_study is not None):
        changes["limits"] = _limits(peer.policy(), asked, lifetime, per_study)
    elif asked == LOCAL:
        changes |= {"lifetime": nano(lifetime)} if lifetime is not None else {}
        changes |= {"max_epsilon": nano(per_study)} if per_study is not None else {}
    if minimum_cohort is not None:
        changes["minimum_cohort"] = minimum_cohort
    if minimum_window is not None:
        changes["minimum_window"] = seconds_of(minimum_window)
    known = peer.policy()
    if changes:
        peer.set_policy(evolve(known, **changes))
        for line in fewer_demanded(known.minimum_cohort, peer.policy().minimum_cohort):
            again = f"`anonml peer budget --minimum-cohort {known.minimum_cohort}` raises it again."
            Terminal(stderr=True).print(f"{line} {again}")
    ledger, policy = peer.budget(), peer.policy()
    held = parts_of(ledger, peer.status())
    print_json(budget_json(ledger, policy, held)) if as_json else show_budget(ledger, policy, held)


def _limits(
    policy: Policy, asked: Budget, lifetime: float | None, per_study: float | None
) -> tuple[BudgetLimit, ...]:
    """The policy's limits with these of one budget in their place; one that is left out stays."""
    known = policy.limit(asked)
    whole = known.lifetime if lifetime is None else in_budget(asked, known.lifetime, amount_of(lifetime))
    most = known.per_study if per_study is None else in_budget(asked, known.per_study, amount_of(per_study))
    return with_limit(policy.limits, BudgetLimit(asked.measure, asked.unit, whole, most))


def predict(
    source: Annotated[str, typer.Argument(help="An invite link, a model.json, or the id of a study you joined.")],
    people: Annotated[Path | None, typer.Option(help="A CSV of people, instead of you; one row each.")] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that tells people apart, when they have several rows.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the predictions of --people to this new CSV.")] = None,
    own: Annotated[
        bool, typer.Option("--own", help="Beside models of groups, with --people: one of your own records too.")
    ] = False,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="With --own: weigh models by a fourth of your records, held back.")
    ] = False,
    as_of: Annotated[int | None, typer.Option(help="Unix time that the queries count as now.")] = None,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """A published model's prediction for you, or for people in a file. Computed here; nothing leaves."""
    from peer import predict as local
    from peer.protocols.installed import PROTOCOLS

    if (own and people is None) or (weighted and not own):
        raise Refused("--own takes --people, and --weighted takes --own")
    if output is not None:
        _demand_new(output)
    instant = int(time.time()) if as_of is None else as_of
    if source.endswith(".json") or Path(source).is_file():
        model = PROTOCOLS.load_model(Path(source))
    else:
        from peer.network.client import AggregatorClient

        routes, (invite, hold) = routes_of(route, home), _named(source, home)
        model = finished(local.fetch_model(AggregatorClient(invite, routes), hold), routes.close)
    mine = None
    if people is None:
        data = existing_home(home).data_path
        for line in local.unfit(model, data):
            _warn(f"{line}; it counts as missing. `anonml peer import FILE --table TABLE`")
        predictions = iter([local.predict_own(model, data, instant)])
    else:
        mine = local.own_beside(model, existing_home(home).data_path, instant, weighted) if own else None
        for line in mine.left_out if mine else ():
            _warn(line)
        predictions = local.predict_people(model, people, person, instant, home, mine)
    if doubt := local.caution(model):
        Terminal(stderr=True).print(styled("[bold yellow]caution:[/] {doubt}", doubt=inline(doubt)))
    for line in local.belief(model):
        Terminal(stderr=True).print(str(line))
    if output is not None:
        Terminal().print(f"{local.write_predictions(predictions, output)} predictions written to {output}")
        return
    predicted = list(predictions)
    if as_json:
        print_json([prediction_json(prediction) for prediction in predicted])
        return
    name = local.predicted_name(model)
    reasons = len(mine.judged) if mine else MOST_REASONS if people is None else 0
    for prediction in predicted:
        show_prediction(prediction, name, people is not None, reasons)


def report(
    study: Annotated[str, typer.Argument(help="An invite link, or the id of a study you joined.")],
    file: Annotated[
        Path | None, typer.Argument(help="The new file to write; report-STUDY.html by default.")
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
) -> None:
    """Fetch the published report of a study and write it as a page that can neither run nor fetch anything."""
    from anon.storage.private_files import new_private
    from peer.network.client import AggregatorClient
    from peer.predict import fetch_report
    from peer.published_report import as_page

    routes, (invite, hold) = routes_of(route, home), _named(study, home)
    target = file or Path(f"report-{invite.study.hex()[:8]}.html")
    _demand_new(target)
    body = finished(fetch_report(AggregatorClient(invite, routes), hold), routes.close)
    page = as_page(body, "Report", "The report as staff published it.")
    with new_private(target) as written:
        written.write(page)
    Terminal().print(f"written to {target}; open it in a browser", soft_wrap=True)


def received(
    study: Annotated[str, typer.Argument(help="The id of a study you joined.")],
    folder: Annotated[Path, typer.Argument(help="The new folder to write to.")],
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write the results of a study that are yours alone; `anonml peer predict` takes a model among them."""
    from anon.storage.private_files import close_folder, new_private

    peer = open_view(home)
    results = peer.store.received(pick(peer, study))
    if not results:
        raise Refused("there is no result of this study for you alone; the published ones are for everybody")
    _demand_new(folder)
    folder.mkdir(mode=0o700)
    close_folder(folder)
    for (kind, part), body in results.items():
        with new_private(folder / f"{kind}-{part}.json") as written:
            written.write(body)
    Terminal().print(f"{len(results)} written to {folder}", soft_wrap=True)


def _warn(message: str) -> None:
    Terminal(stderr=True).print(styled("[bold yellow]missing:[/] {message}", message=inline(message)))


def _demand_new(file: Path) -> None:
    """Raises `Refused` unless a file can be made there."""
    if file.exists():
        raise Refused(f"{file}: exists already; name a new file")
    if not file.parent.is_dir():
        raise Refused(f"{file.parent}: there is no such folder; make it, or name a file elsewhere")


def _named(source: str, home: Path) -> tuple[Invite, Hold]:
    """Where the study is, and how its chain is taken: held to what the home saw, also by a link. No home is made."""
    from peer.network.seen_chains import held_to, unheld

    if not source.startswith("anonml://"):
        peer = open_view(home)
        invite = peer.store.study(pick(peer, source)).invite
        return invite, held_to(peer.store, invite)
    invite = parse_invite(source)
    return invite, held_to(open_view(home).store, invite) if PeerHome(home).store_path.exists() else unheld


def passphrase(home: HomeOption = DEFAULT_HOME) -> None:
    """Put your studies' secrets under a passphrase, or change it: the old one is asked for first.

    ANONML_PASSPHRASE is the one in force, ANONML_NEW_PASSPHRASE the new one; what is not set is asked for.
    """
    peer = open_peer(home)
    chosen = environment.secret(environment.NEW_PASSPHRASE) or _first_passphrase(home) or _typed_twice()
    peer.set_passphrase(chosen)
    Terminal().print("set; it is asked for from now on, and cannot be recovered")


def _first_passphrase(home: Path) -> str:
    return "" if PeerHome(home).settings().salt else environment.secret(environment.PASSPHRASE)


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
    from peer.store.backup.archive import backup as write_backup

    _demand_new(file)
    fixed = finished(write_backup(existing_home(home), file, final, tell=on_one_line))
    Terminal().print(f"written to {file}" + ("; this home is closed" if final else ""))
    if fixed:
        studies = "1 study answers" if fixed == 1 else f"{fixed} studies answer"
        Terminal().print(f"{studies} from your data as they are now: what you import later does not move what is sent")


def restore(
    file: Annotated[Path, typer.Argument(help="The file that `backup` wrote.")],
    time_is_right: Annotated[
        bool,
        typer.Option(
            "--time-is-right",
            help="This clock is right, the lost home's was, and no other copy of it runs: studies whose windows have "
            "not opened go on.",
        ),
    ] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Restore into a directory that is empty. No budget is refilled, and nothing is answered twice."""
    from peer.store.backup.archive import UNCONFIRMED
    from peer.store.backup.archive import restore as read_backup

    result = read_backup(home_of(home), file, time.time() if time_is_right else UNCONFIRMED)
    Terminal().print(f"restored into {home}")
    if result.aggregator:
        Terminal().print("its aggregator too: serve it here only, and nowhere else any more")
    if result.barred:
        Terminal().print(f"{result.barred} studies release nothing more: packets unknown to the backup may have left")
        if not time_is_right:
            Terminal().print("see --time-is-right in `anonml peer restore --help`")


def begin_anew(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False, home: HomeOption = DEFAULT_HOME
) -> None:
    """Make a new ledger in a home that lost its own, with the whole budget counted as spent. A backup is better."""
    from peer.store.ledger_marker import begin_anew as make_anew

    console = Terminal(soft_wrap=True)
    if not yes:
        console.print(
            "A new ledger knows nothing of your studies: what they have not sent is never sent, and their receipts are "
            "gone. Your whole lifetime budget counts as spent; `anonml peer budget --lifetime EPSILON` raises it if "
            "you know better. If you have a backup, restore that instead: `anonml peer restore FILE --home FOLDER`."
        )
        if not agreed("Begin anew?", console):
            raise Refused("you declined; nothing was changed")
    kept = make_anew(existing_home(home))
    console.print("a new ledger was made; all of its budget counts as spent")
    if kept is not None:
        console.print(f"the damaged one is kept as {kept}; remove it when nobody can mend it any more")
