"""This program's verdict on a case of vectors, by kind: what follows from its inputs, or a refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aggregator.audit.packets import PacketContext, check_packets
from aggregator.protocols.installed import PROTOCOLS
from aggregator.protocols.sum.part import SumPart
from anon.credential import IssuedChecker, IssuedCredential, PublicKey, Verifier, signer_nym_entropy
from anon.crypto.nacl import BadSignatureError, VerifyKey
from anon.errors import AnonmlError, Malformed, RejectedProof
from anon.ldp import Mechanism, from_spec
from anon.protocols.contract import Place
from anon.protocols.histogram import thresholds
from anon.protocols.registry import check_study
from anon.protocols.sum.standing import arrangement_of, read_sum
from anon.sharing.round_document import parse_unsummed
from anon.sharing.statements import parse_countersignatures
from anon.study.manifest import Manifest
from anon.transparency.bucketed import read_credentials_bucket, read_packets_bucket, read_roster_bucket, read_transcript
from anon.transparency.buckets import BucketDocument, parse_bucket, parse_bucket_document
from anon.transparency.documents import body_digest, parse_chain
from anon.transparency.fingerprint import head_words, words
from anon.wire.cbor import decode
from anon.wire.messages import parse_seed, study_seed
from anon.wire.packets import parse_published
from anon.wire.strict_json import read_json
from benchmarks.vectors.learned import counted_model, demand_alike, summed_results
from benchmarks.vectors.made import Case, Plain
from benchmarks.vectors.pages import demand_going_on, demand_written, documents_of
from benchmarks.vectors.results import middle_of

Given = Mapping[str, Any]


def verdict(kind: str, case: Case) -> Plain | None:
    """The consequences of the case that its file tells, spelled as there; None where it does not hold."""
    try:
        found = ASKED[kind](case.given)
        return {name: found[name] for name in case.gives}
    except (AnonmlError, ValueError, TypeError):
        return None


def _read(given: Given, name: str) -> bytes:
    return bytes.fromhex(given[name])


def _manifests(given: Given) -> Plain:
    manifest = PROTOCOLS.manifest(_read(given, "manifest"))
    check_study(manifest)
    return {"study": manifest.study_id.hex(), "words": words(manifest.study_id)}


def _cbor(given: Given) -> Plain:
    decode(_read(given, "bytes"))
    return {}


def _heads(given: Given) -> Plain:
    chain = parse_chain(_read(given, "heads"), _read(given, "key"), _read(given, "study"))
    return {"heads": [[one.head.kind, one.head.part, head_words(one)] for one in chain]}


def _seeds(given: Given) -> Plain:
    return {"value": parse_seed(_read(given, "body"), _read(given, "study"), _read(given, "commitment")).hex()}


def _document(given: Given) -> BucketDocument:
    return parse_bucket_document(_read(given, "body"), _read(given, "study"), given["kind"], given["part"])


def _documents(given: Given) -> Plain:
    document = _document(given)
    return {"count": document.count, "bits": document.bits}


def _buckets(given: Given) -> Plain:
    parse_bucket(_read(given, "bucket"), _document(given), given["number"])
    return {}


def _contents(given: Given) -> Plain:
    document, content = _document(given), _read(given, "content")
    if document.kind == "roster":
        return {"entries": len(read_roster_bucket(document, given["number"], content))}
    if document.kind == "credentials":
        return {"entries": len(read_credentials_bucket(document.study, content, document.count))}
    read = read_transcript(document.study, content)
    return {"entries": len(read_packets_bucket(document, given["number"], read))}


def _signatures(given: Given) -> Plain:
    try:
        VerifyKey(_read(given, "key")).verify(_read(given, "message"), _read(given, "signature"))
    except BadSignatureError:
        raise RejectedProof("the signature does not verify") from None
    return {}


def _credentials(given: Given) -> Plain:
    """The checker's coefficients need no chance: one equation is checked alone."""
    entropy = signer_nym_entropy(_read(given, "seed"), _read(given, "member"))
    checker = IssuedChecker(PublicKey(_read(given, "key")), _read(given, "header"), given["packets"])
    if checker.bad([IssuedCredential(_read(given, "commitment"), _read(given, "signature"), entropy)], bytes):
        raise RejectedProof("the credential does not work")
    return {"entropy": entropy.hex()}


def _tokens(given: Given) -> Plain:
    verifier = Verifier(PublicKey(_read(given, "key")), _read(given, "header"), given["packets"])
    tag = verifier.check(_read(given, "token"), _read(given, "context"), _read(given, "presentation"))
    return {"tag": tag.hex()}


def _packets(given: Given) -> Plain:
    manifest = PROTOCOLS.manifest(_read(given, "manifest"))
    roster = _read(given, "roster")
    value = parse_seed(_read(given, "seed"), manifest.study_id, manifest.seed_commitment)
    asked = PacketContext(
        manifest.to_bytes(), PROTOCOLS, body_digest(roster), study_seed(manifest.to_bytes(), roster, value)
    )
    packet = parse_published(_read(given, "packet"))
    (found,) = check_packets(asked, [[packet]])
    if found.fault is not None or found.refused or found.bad_tokens:
        raise RejectedProof("the packet is not acceptable")
    return {"tag": packet.tag.hex(), "survey": packet.survey, "slot": packet.slot}


def _mechanism(given: Given) -> Mechanism:
    return from_spec(given["name"], given["m"], int(given["p"]), int(given["q"]))


def _mechanisms(given: Given) -> Plain:
    mechanism = _mechanism(given)
    return {"epsilon": mechanism.epsilon, "size": mechanism.report_size}


def _reports(given: Given) -> Plain:
    mechanism = _mechanism(given)
    tally = mechanism.tally([mechanism.parse(_read(given, "report"))])
    return {"supports": [category for category, number in enumerate(tally) if number]}


def _counts(given: Given) -> Plain:
    manifest, place = PROTOCOLS.manifest(_read(given, "manifest")), (given["kind"], given["part"])
    found = thresholds.parse(manifest, place, _read(given, "body"))
    told = {"counts": {str(survey): [one.n, *one.counts] for survey, one in found.items()}}
    last = place[0] == "edges" and len(thresholds.longest_documents(manifest)) == 1
    cuts = thresholds.study_cuts(manifest, found) if last else {}
    named = {name: list(values) for name, values in cuts.items()}
    return {**told, "cuts": named, **middle_of(manifest, found)}


def _tellers(given: Given) -> Plain:
    manifest = PROTOCOLS.manifest(_read(given, "manifest"))
    parse_countersignatures(_read(given, "body"), manifest.study_id, arrangement_of(manifest))
    return {}


def _sums(given: Given) -> Plain:
    manifest, number, body = PROTOCOLS.manifest(_read(given, "manifest")), given["round"], _read(given, "body")
    tags = {number: [bytes.fromhex(tag) for tag in given["tags"]]}
    left_out = SumPart().check_sums(manifest, number, body, given["members"], tags)
    found = read_sum(manifest, number, body)
    return {"values": [*map(str, found.values)], "summed": found.accepted, "left out": left_out[number]}


def _ends(given: Given) -> Plain:
    manifest = PROTOCOLS.manifest(_read(given, "manifest"))
    ended = parse_unsummed(arrangement_of(manifest), manifest.study_id, _read(given, "body"))
    return {"round": ended.round, "why": str(ended.why)}


def _models(given: Given) -> Plain:
    text = given["model"]
    if PROTOCOLS.result(text).to_json() != text:
        raise Malformed("the model is not in its one spelling")
    return {"form": read_json(text).get("form", "tables")}


def _learned_counts(given: Given) -> Plain:
    demand_alike(given["result"], counted_model(_read(given, "manifest"), given["counts"]))
    return {}


def _learned_sums(given: Given) -> Plain:
    kind = "rows" if read_json(given["result"]).get("form") == "rows" else "model"
    public = bytes.fromhex(given.get("given", ""))
    demand_alike(given["result"], summed_results(_read(given, "manifest"), given["sums"], public)[kind])
    return {}


def _board(given: Given) -> tuple[Manifest, dict[Place, bytes]]:
    study = PROTOCOLS.manifest(_read(given, "manifest"))
    pages, seats = ([*map(bytes.fromhex, given.get(name, ()))] for name in ("pages", "seats"))
    return study, documents_of(study, pages, seats)


def _boards(given: Given) -> Plain:
    demand_going_on(*_board(given))
    return {}


def _learned_pages(given: Given) -> Plain:
    demand_written(*_board(given), bytes.fromhex(given.get("given", "")), given["result"])
    return {}


ASKED: Final[dict[str, Callable[[Given], Plain]]] = {
    "manifests": _manifests,
    "cbor": _cbor,
    "heads": _heads,
    "seeds": _seeds,
    "bucket-documents": _documents,
    "buckets": _buckets,
    "bucket-contents": _contents,
    "signatures": _signatures,
    "credentials": _credentials,
    "tokens": _tokens,
    "packets": _packets,
    "mechanisms": _mechanisms,
    "reports": _reports,
    "counts": _counts,
    "tellers": _tellers,
    "sums": _sums,
    "ends": _ends,
    "models": _models,
    "learned-counts": _learned_counts,
    "learned-sums": _learned_sums,
    "boards": _boards,
    "learned-pages": _learned_pages,
}
