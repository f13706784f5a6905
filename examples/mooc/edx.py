"""Actions of the example's students written as lines of an edX tracking log.

The fields are those of the edX Research Guide, "Tracking Log Events": browser events carry `event` as a JSON string,
server events as an object. Texts, names, addresses (RFC 5737) and the course are invented.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from attrs import evolve, frozen

from examples.mooc import course
from examples.mooc.behaviour import Action

Record = dict[str, Any]

AGENT = "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0"
VIDEOS = ("play_video", "pause_video", "stop_video")
FORUM = {"thread": "edx.forum.thread.created", "response": "edx.forum.response.created"} | {
    "comment": "edx.forum.comment.created",
    "search": "edx.forum.searched",
}


@frozen
class Identity:
    """Who wrote the log, as edX would know them."""

    username: str
    user_id: int
    ip: str


def identity(index: int) -> Identity:
    """The identity of the student with this index (from 0)."""
    return Identity(f"student{index + 1:05}", 10_001 + index, f"198.51.100.{1 + index % 254}")


def render(who: Identity, actions: Iterable[Action]) -> tuple[str, ...]:
    """The log lines of these actions, in order of time, without line ends. An action leaves one line or two."""
    records = [record for action in actions for record in _records(who, action)]
    # All times are UTC and equally long, so that their texts sort as they do.
    return tuple(_json(record) for record in sorted(records, key=lambda record: str(record["time"])))


def _records(who: Identity, action: Action) -> Iterator[Record]:
    match action.kind:
        case "check":
            yield _browser(who, action, "problem_check", f"input_{action.target}_2_1={_answer(action)}")
            yield _server(who, _later(action), "problem_check", _checked(action), _handler(action.target))
        case "show_answer":
            key = course.block("problem", action.target)
            yield _browser(who, action, "problem_show", _json({"problem": key}))
            yield _server(who, _later(action), "showanswer", {"problem_id": key}, _handler(action.target))
        case "courseware":
            path = f"/courses/{course.COURSE_ID}/courseware/{action.target}/"
            yield _server(who, action, path, _json({"POST": {}, "GET": {}}), path)
        case "thread" | "response" | "comment" | "search":
            path = f"/courses/{course.COURSE_ID}/discussion/{action.target}"
            yield _server(who, action, FORUM[action.kind], _posted(action), path)
        case "page_close":
            yield _browser(who, action, "page_close", "")
        case kind:
            yield _browser(who, action, kind, _json(_browsed(action)))


def _browsed(action: Action) -> dict[str, Any]:
    if action.kind in VIDEOS:
        return {"id": action.target, "currentTime": round(action.position, 3), "code": "html5"}
    if action.kind == "seek_video":
        old, new = round(action.position, 3), round(action.position / 2, 3)
        return {"id": action.target, "old_time": old, "new_time": new, "type": "onSlideSeek", "code": "html5"}
    step = 1 if action.kind == "seq_next" else 2
    key = course.block("sequential", action.target)
    return {"old": int(action.position), "new": int(action.position) + step, "id": key}


def _checked(action: Action) -> dict[str, Any]:
    verdict, entry = ("correct" if action.correct else "incorrect"), f"{action.target}_2_1"
    return {
        "problem_id": course.block("problem", action.target),
        "attempts": action.attempt,
        "success": verdict,
        "grade": int(action.correct),
        "max_grade": 1,
        "answers": {entry: _answer(action)},
        "correct_map": {entry: {"correctness": verdict, "msg": "", "npoints": None}},
    }


def _posted(action: Action) -> dict[str, Any]:
    if action.kind == "search":
        return {"query": "week", "corrected_text": None, "page": 1, "total_results": 3, "group_id": None}
    return {"id": action.target, "body": "(invented)", "commentable_id": "course", "truncated": False, "group_id": None}


def _answer(action: Action) -> str:
    return f"{action.attempt}" if action.correct else f"-{action.attempt}"


def _handler(problem: str) -> str:
    key = course.block("problem", problem)
    return f"/courses/{course.COURSE_ID}/xblock/{key}/handler/xmodule_handler/problem_check"


def _later(action: Action) -> Action:
    """The server logs what the browser asked for a moment afterwards."""
    return evolve(action, second=action.second + 0.13)


def _browser(who: Identity, action: Action, event_type: str, event: str) -> Record:
    page = f"https://{course.HOST}/courses/{course.COURSE_ID}/courseware/"
    said = {"event_source": "browser", "event_type": event_type, "page": page, "event": event}
    return _line(who, action, said, "/event")


def _server(who: Identity, action: Action, event_type: str, event: Any, path: str) -> Record:
    said = {"event_source": "server", "event_type": event_type, "page": "x_module", "event": event}
    return _line(who, action, said, path)


def _line(who: Identity, action: Action, said: Record, path: str) -> Record:
    moment = course.START + timedelta(seconds=action.second)
    common = {
        "username": who.username,
        "time": moment.isoformat(timespec="microseconds"),
        "session": hashlib.sha256(f"{who.username} {action.session}".encode()).hexdigest()[:32],
        "ip": who.ip,
        "agent": AGENT,
        "host": course.HOST,
        "context": {"user_id": who.user_id, "org_id": course.ORG, "course_id": course.COURSE_ID, "path": path},
    }
    return common | said


def _json(value: Any) -> str:
    return json.dumps(value)
