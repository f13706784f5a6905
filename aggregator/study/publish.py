"""From a proposal to a manifest that can be published: queries linted, design resolved, secrets drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aggregator.rules.lengths import demand_readable, with_room
from aggregator.store.home import StudySecrets, draw_study_secrets
from anon.protocols.contract import GivenPart
from anon.protocols.registry import check_study, protocol_of
from anon.protocols.resolve import resolve
from anon.queries.lint import lint
from anon.study.given import NONE_GIVEN
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal
from anon.text.sentences import Term


def lint_queries(proposal: Proposal) -> None:
    """Raises what `anon.queries.lint.lint` raises for the first query that reads or calls what it may not."""
    tables = {table.name: table.columns for table in proposal.tables}
    queries = [
        (proposal.label.name, proposal.label.query),
        *((feature.name, feature.query) for feature in proposal.features),
    ]
    for name, query in queries:
        lint(query, tables, Term(f"{name}.query"), many=proposal.many is not None)


def prepare(
    proposal: Proposal,
    aggregator_key: bytes,
    now: float,
    random_bytes: Callable[[int], bytes],
    randbelow: Callable[[int], int],
    address: str = "",
    given: Mapping[str, bytes] = NONE_GIVEN,
) -> tuple[Manifest, StudySecrets]:
    """The manifest of a study published at `now`, served at the onion address `address` (empty: on this machine only),
    and the secrets behind its public keys. `given`: the contents of its public documents, by name.

    Raises `Malformed` or `Refused` for a query or a design that cannot be. Nothing is stored or published yet.
    """
    lint_queries(proposal)
    secrets = draw_study_secrets(random_bytes)
    manifest = resolve(proposal, secrets.public(aggregator_key), int(now), randbelow, address, given)
    check_study(manifest)
    protocol = protocol_of(manifest)
    if manifest.given and isinstance(protocol, GivenPart):
        named = enumerate(manifest.given)
        protocol.check_given(manifest, {("given", at): given[document.name] for at, document in named})
    if not proposal.cohort.maximum:
        manifest = with_room(manifest)
    demand_readable(manifest)
    return manifest, secrets
