"""OpenAPI 3.1 documents of both HTTP interfaces, from the tables of their routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from aggregator.desk.routes import Endpoint
from anon.kit.page.gate import FORM_FIELD
from anon.transparency.together import HeadGroup
from anon.wire.replies import ENROLMENT_REFUSALS, PACKET_REFUSALS, REPLY_BYTES

STUDY_ID = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_WORDS = {"enrol": ("accepted", "busy", *ENROLMENT_REFUSALS), "withdraw": ("withdrawn", "busy", *ENROLMENT_REFUSALS),
          "packets": ("accepted", "busy", *PACKET_REFUSALS)}
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def desk_document(routes: Sequence[Endpoint], origin: str) -> dict[str, Any]:
    """Of the desk."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return _document(
        "AnonML desk",
        "The staff's pages on loopback. Every request needs the cookie that the printed link is exchanged for (at "
        "/enter, once), the metrics a bearer token; every POST its own Origin and the form's token.",
        paths,
        [{"url": origin}],
        {"cookie": {"type": "apiKey", "in": "cookie", "name": "anonml-desk-PORT"},
         "metrics": {"type": "http", "scheme": "bearer"}},
    )


def public_document() -> dict[str, Any]:
    """Of what the aggregator answers peers (docs/protocol.md). No answer has a media type, a date or a server name."""
    heads = {"200": {"description": "the chain of signed heads, deterministic CBOR", "content": _BYTES}, "404": _none()}
    said = "the heads' length in 4 bytes, the heads, and the bodies as the heads have them; the time in 8 bytes"
    together = {"200": {"description": said, "content": _BYTES}, "404": _none()}
    body = {"200": {"description": "the document's body", "content": _BYTES}, "404": _none()}
    paths: dict[str, dict[str, Any]] = {
        "/v1/{study}/heads": {"parameters": [_study()], "get": _plain("heads", "Everything signed so far.", heads)},
        "/v1/{study}/heads/{group}": {
            "parameters": [_study(), _group()],
            "get": _plain("together", "The heads, and the bodies of a group of documents or the time.", together),
        },
        "/v1/{study}/documents/{number}": {
            "parameters": [_study(), _number("number", 0)],
            "get": _plain("document", "The body of one document of the chain.", body),
        },
        "/v1/{study}/buckets/{number}/{bucket}": {
            "parameters": [_study(), _number("number", 0), _number("bucket", 0)],
            "get": _plain("bucket", "A bucket of a document in buckets, with its path to the root.", body),
        },
        "/v1/{study}/contents/{number}/{bucket}": {
            "parameters": [_study(), _number("number", 0), _number("bucket", 0)],
            "get": _plain("contents", "The same for an audit: of a transcript its packets.", body),
        },
    }
    posts = {"enrol": "Enrol with a sealed, signed request.", "withdraw": "Leave before the roster closes.",
             "packets": "Submit one sealed packet. The same bytes get the same answer."}
    for name, what in posts.items():
        answer = {"200": {
            "description": f"one of {', '.join(_WORDS[name])}; padded with spaces to {REPLY_BYTES} bytes",
            "content": {"application/octet-stream": {"schema": {
                "type": "string", "minLength": REPLY_BYTES, "maxLength": REPLY_BYTES}}}},
            "400": _none("the body did not come in time, or the request is no HTTP"), "404": _none()}
        posted = _plain(name, what, answer) | {"requestBody": {"required": True, "content": _BYTES}}
        paths[f"/v1/{{study}}/{name}"] = {"parameters": [_study()], "post": posted}
    about = "What peers ask of an aggregator: docs/protocol.md."
    return _document("AnonML aggregator", about, paths, [{"url": "/"}], {})


def _group() -> dict[str, Any]:
    return {"name": "group", "in": "path", "required": True, "schema": {"type": "string", "enum": [*HeadGroup]}}


def _number(name: str, least: int) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": least, "maximum": 999_999_999}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _operation(route: Endpoint) -> dict[str, Any]:
    described: dict[str, Any] = {"operationId": route.name, "summary": route.summary}
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    if names:
        described["parameters"] = [_study(name) for name in names]
    if route.method == "POST":
        properties = {name: {"type": "string", "description": what} for name, what in route.fields.items()}
        properties[FORM_FIELD] = {"type": "string", "description": "from a page of this session"}
        schema = {"type": "object", "properties": properties, "required": sorted(properties)}
        kinds = ["application/x-www-form-urlencoded", *(["multipart/form-data"] if route.uploads else [])]
        described["requestBody"] = {"content": {kind: {"schema": schema} for kind in kinds}}
    answers: dict[str, Any] = {str(status): {"description": "done"} for status in route.answers}
    if 200 in route.answers:
        kind = "object" if route.sends == "application/json" else "string"
        answers["200"] = {"description": "the page", "content": {route.sends: {"schema": {"type": kind}}}}
    refused = {"400": "not as the form is", "401": "no session", "403": "another origin, host, or no form token"}
    if names:
        refused["404"] = "no such study"
    answers |= {status: {"description": what} for status, what in refused.items()}
    described["responses"] = answers
    described["security"] = [{"metrics": []}] if route.path == "/metrics" else [{"cookie": []}]
    return described


def _plain(name: str, summary: str, answers: Mapping[str, Any]) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "responses": dict(answers)}


def _study(name: str = "study") -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": STUDY_ID}


def _none(what: str = "no such study or document") -> dict[str, Any]:
    return {"description": what}


def _document(
    title: str, what: str, paths: Mapping[str, Any], servers: Iterable[Mapping[str, str]], schemes: Mapping[str, Any]
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version("anonml"), "description": what},
        "servers": list(servers),
        "paths": dict(paths),
    }
    if schemes:
        document["components"] = {"securitySchemes": dict(schemes)}
    return document
