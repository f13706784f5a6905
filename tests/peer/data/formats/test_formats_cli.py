"""`anonml peer import` with and without --preview, as a person and a program see it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.real_exports import moodle_csv, takeout_json, takeout_path, zipped

ROOT = Path(__file__).parents[4]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anonml", "peer", "import", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env={"PATH": "/usr/bin:/bin", "COLUMNS": "100"}
    )


@pytest.mark.slow
def test_a_preview_and_an_import_of_a_localised_takeout(tmp_path: Path) -> None:
    file, home = zipped(tmp_path / "takeout.zip", {takeout_path("fr", "json"): takeout_json()}), tmp_path / "home"
    shown = run(file, "--preview", "--home", home)
    assert shown.returncode == 0, shown.stderr
    assert "This is an activity export of Google Takeout (1 file in a zip archive)." in shown.stdout
    assert "takeout_activity, 2 rows" in shown.stdout
    assert "title: texts" in shown.stdout
    assert "Nothing was imported" in shown.stdout
    assert not (home / "data.sqlite").exists()
    seen = json.loads(run(file, "--preview", "--json", "--home", home).stdout)
    assert (seen["format"], seen["tables"][0]["count"], len(seen["tables"][0]["rows"])) == ("takeout", 2, 2)
    done = json.loads(run(file, "--json", "--home", home).stdout)
    assert (done["format"], done["table"], done["rows"], done["skipped"]) == ("takeout", "takeout_activity", 2, 0)


@pytest.mark.slow
def test_the_owner_is_told_what_was_skipped_and_why(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(moodle_csv() + "secret\n", encoding="utf-8")
    done = run(tmp_path / "l.csv", "--home", tmp_path / "home")
    assert "2 rows in table moodle_log (time, user_full_name," in done.stdout
    assert "from a Moodle log (CSV separated by commas)" in done.stdout
    assert "1 line skipped: 1 another number of cells than the heading (the first by number: 4)" in done.stdout
    assert "secret" not in done.stdout + done.stderr


@pytest.mark.slow
def test_an_unsafe_archive_is_one_line_and_exit_code_4(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "u.zip", "w") as archive:
        archive.writestr("../../secret.csv", "a\n1\n")
    for more in ((), ("--preview",)):
        done = run(tmp_path / "u.zip", "--home", tmp_path / "home", *more)
        assert done.returncode == 4
        assert "leads out of it" in done.stderr
        assert "secret" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
