"""JSON from outside has one spelling for every reader, so that no two find two documents in the same bytes."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aggregator.audit import likeness
from anon.errors import Malformed, Unreachable
from anon.protocols.models import reading
from anon.protocols.models.linear import FORM
from anon.sharing.exchange import read_fault
from anon.wire.strict_json import read_json
from tests.support.protocols import load_model, read_model

ROOT = Path(__file__).resolve().parents[3]
PLAIN = json.dumps({"form": FORM, "error": "refused", "message": "é"}, ensure_ascii=False)
OTHER_SPELLINGS: dict[str, bytes] = {
    **{
        name: PLAIN.encode(name)
        for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig", "latin-1")
    },
    "two marks": codecs.BOM_UTF8 * 2 + PLAIN.encode(),
    "a mark alone": codecs.BOM_UTF8,
    "a lone surrogate": PLAIN.replace("é", "\ud800").encode("utf-8", "surrogatepass"),
    "an overlong letter": PLAIN.encode().replace("é".encode(), b"\xc1\xa1"),
    "a key twice": PLAIN.replace('"error"', '"message": "a", "error"').encode(),
    "a key twice within": PLAIN.replace('"é"', '{"a": 1, "a": 2}').encode(),
    "no number": PLAIN.replace('"é"', "NaN").encode(),
    "infinite": PLAIN.replace('"é"', "-Infinity").encode(),
    "infinite in digits": PLAIN.replace('"é"', "1e999").encode(),
    "too deep": b"[" * 100_000,
    "too many digits": b"9" * 5000,
    "a second value": PLAIN.encode() * 2,
}


def test_the_one_spelling_is_read() -> None:
    assert read_json(PLAIN.encode()) == read_json(PLAIN) == json.loads(PLAIN)
    assert read_json(b' [1, 1.5e3, -0.0, true, null, "\\ud83d\\ude00"]\n') == [1, 1500.0, -0.0, True, None, "😀"]
    assert str(read_fault(PLAIN.encode())) == "“é”"


@pytest.mark.parametrize("name", OTHER_SPELLINGS)
def test_every_reader_of_a_strangers_json_refuses_another_spelling(name: str, tmp_path: Path) -> None:
    data, file = OTHER_SPELLINGS[name], tmp_path / "model.json"
    file.write_bytes(data)
    readers: list[tuple[type[Exception], Callable[[], Any]]] = [
        (ValueError, partial(read_json, data)),
        (ValueError, partial(likeness.read_result, data)),
        (Malformed, partial(reading.read, data)),
        (Malformed, partial(read_model, data)),
        (Malformed, partial(load_model, file)),
    ]
    for refused, read in readers:
        with pytest.raises(refused, match=None if refused is ValueError else "model: not the JSON of a model"):
            read()
    assert type(read_fault(data)) is Unreachable


READS = re.compile(r"\bjson\.(loads?|JSONDecoder)\b|^from json import|import json as", re.MULTILINE)
OWN_TEXT = {
    "anon/wire/strict_json.py": "the one reader",
    "anon/text/sentences.py": "a text of the store",
    "anon/kit/terminal/helps.py": "a file of this program",
    "anon/queries/answers.py": "a message of our own parent process",
    "peer/store/records.py": "a text of the store",
    "aggregator/auditor/adapters.py": "a text of the audited program, which the user chose to run",
    "aggregator/auditor/boxes.py": "a text of our own child",
    "aggregator/auditor/domain.py": "a domain that the user wrote",
    "aggregator/auditor/page.py": "within a page: the pair that was tried",
    "aggregator/auditor/runner.py": "a text of its own parent, read by a Python that has none of our packages",
    "aggregator/auditor/target.py": "a pair that the user wrote",
    "peer/store/rows.py": "a text of the store",
    "peer/desktop/login/systemd_unit.py": "a line of our own unit",
    "peer/desktop/login/xdg_autostart.py": "a line of our own entry",
    "peer/data/foreign.py": "a text of our own child",
    "peer/data/foreign_talk.py": "a text of our own child, which may have lone surrogates",
    "peer/data/formats/json_text.py": "the owner's own file, read in a child as people save it",
}
"""The modules that call Python's reader, each on a text that it did not get from a stranger."""


@pytest.mark.slow
def test_no_other_module_reads_json_by_itself() -> None:
    paths = [path for room in ("anon", "peer", "aggregator") for path in (ROOT / room).rglob("*.py")]
    found = {path.relative_to(ROOT).as_posix() for path in paths if READS.search(path.read_text("utf-8"))}
    assert found == OWN_TEXT.keys()
