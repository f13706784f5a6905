"""Files written as the real systems write them. The people and events in them are invented.

* edX: "edX Research Guide", Events in the Tracking Logs, Common Fields and Sample Events
  (edx.readthedocs.io/projects/devdata, internal_data_formats/tracking_logs).
* Moodle: docs.moodle.org, "Logs", Download table data as CSV or JSON; columns of `report_log` (table_log), JSON by
  `dataformat_json`: a list of sheets, each a list of rows, PHP's JSON_PRETTY_PRINT, no heading.
* Google Takeout: "My Activity Schema Reference" (developers.google.com/data-portability/schema-reference/my_activity)
  for the fields; folder and file names as exports in these languages have them.
"""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

NBSP, NARROW = "\u00a0", "\u202f"

# --- edX ---


def edx_lines(count: int = 6) -> list[str]:
    """Browser and server events, an enrolment by the platform and one from the mobile app: ragged on purpose."""
    return [json.dumps(_edx(number)) for number in range(count)]


def _edx(number: int) -> dict[str, Any]:
    course = "course-v1:Example+CS1+2024"
    common = {
        "username": "ada", "ip": "198.51.100.7", "agent": "Mozilla/5.0", "host": "courses.example.org",
        "time": f"2024-02-05T10:00:{number % 60:02}.123456+00:00",
        "context": {"user_id": 7, "org_id": "Example", "course_id": course, "path": "/event"},
    }  # fmt: skip
    kinds: list[dict[str, Any]] = [
        {
            "event_source": "browser",
            "event_type": "play_video",
            "session": "0" * 32,
            "page": "https://courses.example.org/x",
            "event": json.dumps({"id": "v1", "currentTime": 1.5, "code": "html5"}),
            "referer": "",
            "accept_language": "de",
        },
        {"event_source": "server", "event_type": "problem_check", "page": "x_module", "name": "problem_check",
         "event": {"problem_id": "block-v1:p1", "success": "correct", "grade": 1, "answers": {"p1_2_1": "ö"}}},
        {
            "event_source": "server",
            "event_type": "edx.course.enrollment.activated",
            "name": "edx.course.enrollment.activated",
            "event": {"course_id": course, "user_id": 7, "mode": "honor"},
            "session": None,
            "page": None,
        },
        {
            "event_source": "mobile",
            "event_type": "edx.video.played",
            "name": "edx.video.played",
            "event": '{"id": "v1"}',
            "session": "",
            "context_extra": {"app": "ios"},
        },
    ]  # fmt: skip
    return common | kinds[number % len(kinds)]


# --- Moodle ---

MOODLE_HEADINGS = {
    "en": "Time,User full name,Affected user,Event context,Component,Event name,Description,Origin,IP address",
    "de": (
        "Zeit,Vollständiger Name,Betroffene/r Nutzer/in,Ereigniskontext,Komponente,Ereignisname,Beschreibung,"
        "Herkunft,IP-Adresse"
    ),
    "pt": (
        "Hora,Nome completo,Usuário afetado,Contexto do Evento,Componente,Nome do evento,Descrição,Origem,"
        "endereço IP"
    ),
    "fi": (
        "Aika,Käyttäjän koko nimi,Käyttäjä johon vaikutetaan,Tapahtuman konteksti,Komponentti,Tapahtuman nimi,"
        "Kuvaus,Alkuperä,IP-osoite"
    ),
    "ja": (
        "日時,ユーザフルネーム,影響を受けるユーザ,イベントコンテクスト,コンポーネント,イベント名,説明,起源,"
        "IPアドレス"
    ),
}
MOODLE_TIMES = {
    "en": ("5/02/24, 14:21", "28/01/24, 09:05"),
    "de": ("05.02.24, 14:21", "28.01.24, 09:05"),
    "pt": ("5/02/24, 14:21:00", "28/01/24, 09:05:00"),
    "fi": ("5.02.2024, 14:21", "28.01.2024, 09:05"),
    "ja": ("2024年 02月 5日 14:21", "2024年 01月 28日 09:05"),
}


def moodle_rows(language: str = "en") -> list[list[str]]:
    """Newest first, as the report is."""
    late, early = MOODLE_TIMES[language]
    return [
        [
            late, "Ada Beispiel", "-", 'Quiz: Week 1, part "b"', "Quiz", "Quiz attempt started",
            "The user with id '7' has started the attempt with id '31' for the quiz with course module id '12'.", "web",
            "198.51.100.7",
        ],
        [early, "Ada Beispiel", "Ada Beispiel", "Course: Example", "System", "Course viewed",
         "The user with id '7' viewed the course with id '3'.", "ws", "2001:db8::7"],
    ]  # fmt: skip


def moodle_csv(language: str = "en") -> str:
    """With a byte order mark, as Moodle writes it."""
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n ') else text

    heading = ",".join(cell(name) for name in MOODLE_HEADINGS[language].split(","))
    return "\ufeff" + "\n".join([heading, *(",".join(map(cell, row)) for row in moodle_rows(language))]) + "\n"


def moodle_json() -> str:
    """One sheet."""
    return "[[" + ",".join(json.dumps(row, indent=4, ensure_ascii=False) for row in moodle_rows()) + "]]"


# --- Google Takeout ---

TAKEOUT_PATHS = {
    "en": ("My Activity", "Search", "MyActivity"),
    "en-GB": ("My Activity", "Search", "My Activity"),
    "de": (f"Meine{NBSP}Aktivitäten", "Google Suche", "MeineAktivitäten"),
    "fr": ("Mon activité", "Recherche", "MonActivité"),
    "es": ("Mi actividad", "Búsqueda", "MiActividad"),
    "nl": ("Mijn activiteit", "Zoeken", "MyActivity"),
    "tr": ("Etkinliğim", "Arama", "Etkinliğim"),
    "zh": ("我的活动记录", "Search", "我的活动记录"),
    "ar": ("نشاطي", "البحث", "نشاطي"),
    "xx, a language nobody listed": ("Moja tjest", "Trag", "MojaTjest"),
}
TAKEOUT_TIMES = {
    "en": f"Aug 25, 2020, 5:06:44{NARROW}PM PDT",
    "en-GB": "26 Aug 2020, 01:06:44 BST",
    "de": "26.08.2020, 02:06:44 MESZ",
    "fr": "26 août 2020, 02:06:44 CEST",
    "es": "26 ago 2020, 2:06:44 CEST",
    "nl": "26 aug 2020 02:06:44 CEST",
    "tr": "26 Ağu 2020 03:06:44 TRT",
    "zh": "2020年8月26日 08:06:44 GMT+08:00",
}
TAKEOUT_INSTANT = "2020-08-26T00:06:44.000Z"
PRODUCTS = {"en": "Products:", "de": "Produkte:", "fr": f"Produits{NBSP}:", "es": "Productos:"}


def takeout_path(language: str, suffix: str, product: str | None = None) -> str:
    folder, own_product, name = TAKEOUT_PATHS[language]
    return f"Takeout/{folder}/{product or own_product}/{name}.{suffix}"


def takeout_json(entries: int = 2) -> str:
    """Pretty-printed, with what JavaScript escapes."""
    found: list[dict[str, Any]] = [
        {
            "header": "Search",
            "title": "Searched for bounded memory",
            "titleUrl": "https://www.google.com/search?q\u003dbounded",
            "time": "2020-08-26T00:06:44.123Z",
            "products": ["Search"],
            "activityControls": ["Web & App Activity"],
        },
        {"header": "YouTube", "title": "Watched a lecture", "titleUrl": "https://www.youtube.com/watch?v\u003d1",
         "subtitles": [{"name": "A channel", "url": "https://www.youtube.com/channel/1"}],
         "time": "2020-08-26T00:06:44Z",
         "products": ["YouTube"], "details": [{"name": "From Google Ads"}], "description": "Watched at 14:21"},
    ]  # fmt: skip
    return json.dumps([found[number % 2] for number in range(entries)], indent=2).replace("=", "\\u003d")


def takeout_html(language: str = "en", entries: int = 2) -> str:
    """One line, after a style sheet of the length it really has."""
    style = "<style>" + ".mdl-cell{width:100%}" * 6500 + "</style>"
    body = "".join(_cell(language, number) for number in range(entries))
    head = f'<html><head><meta charset="utf-8"><title>x</title>{style}</head><body>'
    return f'{head}<div class="mdl-grid">{body}</div></body></html>'


def _cell(language: str, number: int) -> str:
    time, products = TAKEOUT_TIMES.get(language, TAKEOUT_TIMES["en"]), PRODUCTS.get(language, "Products:")
    said = [
        f'Searched for&nbsp;<a href="https://www.google.com/search?q=a&amp;b">a &amp; b</a><br>{time}<br>',
        f'1 notification<br>Including topics:<br><a href="https://www.google.com/maps">Weather</a><br>{time}<br>',
    ][number % 2]
    return (
        '<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid">'
        '<div class="header-cell mdl-cell mdl-cell--12-col"><p class="mdl-typography--title">Search<br></p></div>'
        f'<div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1">{said}</div>'
        '<div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1 mdl-typography--text-right"></div>'
        '<div class="content-cell mdl-cell mdl-cell--12-col '
        f'mdl-typography--caption"><b>{products}</b><br>&emsp;Search<br>'
        "<b>Why is this here?</b><br>&emsp;A setting was on.</div></div></div>"
    )  # fmt: skip


# --- archives ---


def zipped(file: Path, members: dict[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """An ordinary archive of these."""
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file


def tarred(file: Path, members: dict[str, str | bytes], form: int = tarfile.PAX_FORMAT) -> Path:
    """An ordinary tar archive of these; gzip if the name says so."""
    with tarfile.open(file, "w:gz" if file.name.endswith("gz") else "w", format=form) as archive:
        for name, content in members.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file
