"""Every route of the desk in one table: what is served, what the OpenAPI document says and what tests walk."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from aggregator.desk.metrics import CONTENT_TYPE

_TEXT = {"text": "the study file", "draft": "the id of its draft, if it has one"}
_FORM = {"draft": "the id of its draft", "epsilon": "the record-level epsilon; and the form's other fields"}
_STUDY = "/studies/{study}"


@frozen
class Endpoint:
    """One route of the desk. `fields`: what its form carries beside the form's token; `sends`: its media type;
    `uploads`: whether a field may come as a file too."""

    method: str
    path: str
    name: str
    summary: str
    fields: Mapping[str, str] = field(factory=dict)
    sends: str = "text/html"
    answers: tuple[int, ...] = (200,)
    uploads: bool = False


ROUTES: tuple[Endpoint, ...] = (
    Endpoint("GET", "/", "studies", "All studies and their phases."),
    Endpoint("GET", "/class-size", "class_size", "Whether so many people are enough: `?people=&features=&epsilon=`."),
    Endpoint("GET", "/editor", "editor", "The study editor; `?draft=` names a kept one.", answers=(200, 404)),
    Endpoint("POST", "/editor", "check", "Check a study file; the page again, with faults or what it would ask.",
             _TEXT),
    Endpoint("POST", "/editor/lint", "lint", "The same as a fragment, for checking while somebody types.", _TEXT),
    Endpoint("POST", "/editor/confirm", "confirm", "What publishing would fix for good, with the question.", _TEXT),
    Endpoint("POST", "/editor/outlook", "outlook", "The forecast of a study file, as a fragment.", _TEXT),
    Endpoint("GET", "/form", "form", "By form; `?draft=` names a kept one, `?like=` a study.", answers=(200, 404)),
    Endpoint("POST", "/form", "form_check", "The form with what to expect of the study.", _FORM, uploads=True),
    Endpoint("POST", "/form/columns", "form_columns", "The form with a sample file's columns.", _FORM, uploads=True),
    Endpoint("POST", "/form/outlook", "form_outlook", "What to expect, as a fragment, while the slider moves.", _FORM,
             uploads=True),
    Endpoint("POST", "/form/reading", "form_reading", "What each step lacks, and what students read, as a fragment.",
             _FORM, uploads=True),
    Endpoint("POST", "/form/tellers", "form_tellers", "The form with the tellers that answer.", _FORM, uploads=True),
    Endpoint("POST", "/form/round", "form_round", "The form after a round of made-up people with its tellers.", _FORM,
             uploads=True),
    Endpoint("POST", "/form/mail", "form_mail", "The mail to those who are asked to be a teller.", _FORM, uploads=True),
    Endpoint("POST", "/form/text", "form_text", "Write the study file of the form.", _FORM, answers=(303,),
             uploads=True),
    Endpoint("POST", "/form/publish", "form_publish", "Write the study file, and what publishing would fix for good.",
             _FORM, uploads=True),
    Endpoint("POST", "/drafts/discard", "discard", "Throw a draft away.", {"draft": "its id"}, answers=(303,)),
    Endpoint("POST", "/studies", "publish", "Publish a study.",
             _TEXT | {"reach": "onion (the address of this home) or loopback"}, answers=(200, 303, 409)),
    Endpoint("GET", _STUDY, "study", "One study: phase, counters, estimates, accuracy, privacy."),
    Endpoint("GET", f"{_STUDY}/roster", "roster", "The keys of the published roster, by key."),
    Endpoint("GET", f"{_STUDY}/fingerprints", "fingerprints", "The words of every signed document."),
    Endpoint("POST", f"{_STUDY}/invites", "invites", "Draw invites and show them once.",
             {"count": "how many, 1 to 1000", "address": "where peers reach the aggregator"}, answers=(200, 409)),
    Endpoint("POST", f"{_STUDY}/invites.csv", "invite_table", "The links of a page that was just shown, as a table.",
             {"links": "links to this study, one a line"}, sends="text/csv"),
    Endpoint("GET", f"{_STUDY}/class", "class_page", "One page for a whole class."),
    Endpoint("POST", f"{_STUDY}/allow", "allow", "Put keys on the list of those admitted.",
             {"keys": "keys of 64 hexadecimal digits"}, answers=(303, 409)),
    Endpoint("POST", f"{_STUDY}/audit", "audit", "Begin an audit of what is published.", answers=(303,)),
    Endpoint("POST", f"{_STUDY}/forecast", "forecast", "Begin a forecast on made-up people.", answers=(303,)),
    Endpoint("GET", f"{_STUDY}/report", "report", "The published report; `?save=1` as a file.", answers=(200, 409)),
    Endpoint("POST", f"{_STUDY}/report", "evaluate",
             "The report with a ROC curve and errors by subgroup on a test set.",
             {"people": "a CSV file with the columns of the study's table", "save": "1 for a file"},
             answers=(200, 409), uploads=True),
    Endpoint("GET", f"{_STUDY}/model.json", "model", "The published model.", sends="application/json",
             answers=(200, 409)),
    Endpoint("GET", f"{_STUDY}/export.zip", "export", "Everything the study has published.", sends="application/zip"),
    Endpoint("POST", "/sign-out", "sign_out", "End this session.", answers=(200,)),
    Endpoint("GET", "/metrics", "metrics", "Prometheus metrics; 503 while the database is away.",
             sends=CONTENT_TYPE.partition(";")[0], answers=(200, 503)),
    Endpoint("GET", "/openapi.json", "openapi", "This document.", sends="application/json"),
    Endpoint("GET", "/aggregator.json", "aggregator_openapi", "The document of what peers ask.",
             sends="application/json"),
    Endpoint("GET", "/desk.css", "style", "The style sheet.", sends="text/css"),
    Endpoint("GET", "/desk.js", "script", "The live parts.", sends="text/javascript"),
)
