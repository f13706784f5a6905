"""The files by which an aggregator, its database and its tors are set up: complete, hardened, and of commands that
exist.

Docker itself is not run: the files are read as Compose and systemd read them. `tests/tor/test_several_onions.py` runs
the unit's commands on a real server, through a private Tor network.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from typer.main import get_command

from aggregator.store.postgres import _DEMANDED
from anonml import application
from tests.support.deployed import DEPLOY, HOME, PROGRAM, SOCKETS, UNIT, settings_of, unit_words
from tests.support.postgres import Server

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("prepare", "aggregator")
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")


def _command(service: str) -> list[str]:
    """The words after `anonml` of a service's command."""
    words = SERVICES[service]["command"]
    if SERVICES[service].get("entrypoint") == ["sh", "-c"]:
        (line,) = words
        words = shlex.split(line.split("|")[-1])
        assert words[0] == "anonml"
        return list(words[1:])
    return list(words)


def _health(service: str) -> list[str]:
    kind, *words = SERVICES[service]["healthcheck"]["test"]
    assert kind == "CMD"
    return list(words)


def _parsed(words: list[str]) -> dict[str, Any]:
    """The options of an `anonml` command, as it reads them. Nothing is run."""
    group = get_command(application(words[0]))
    command = group.commands[words[1]]  # type: ignore[attr-defined]
    return dict(command.make_context(words[1], words[2:]).params)


def test_every_command_is_one_of_ours_with_options_that_it_has(tmp_path: Path) -> None:
    begin = _parsed(unit_words("ExecStartPre", tmp_path, tmp_path))
    assert begin["database"] == f"postgresql+asyncpg://anonml@/anonml?host={tmp_path}"
    for serve in (_parsed(unit_words("ExecStart", tmp_path, tmp_path)), _parsed(_command("aggregator"))):
        assert (serve["onion"], serve["onions"], serve["workers"]) == (True, 2, 2)
    assert _parsed(_command("prepare"))["database"] == "-"
    program, *status = _health("aggregator")
    assert program == "anonml" and _parsed(status)["as_json"] and _parsed(status)["served"]
    assert "--onions" in _command("aggregator")
    with pytest.raises(Exception, match=r"(?i)no such option"):
        _parsed([*_command("aggregator"), "--onionz"])


def test_all_of_the_aggregator_is_in_one_home() -> None:
    homes = {
        str(_parsed(words)["home"])
        for words in (_command("prepare"), _command("aggregator"), _health("aggregator")[1:])
    }
    assert homes == {"/var/lib/anonml"}
    for name in OURS:
        assert "home:/var/lib/anonml" in SERVICES[name]["volumes"]
    assert {
        str(_parsed(unit_words(name, Path(HOME), Path(SOCKETS)))["home"]) for name in ("ExecStartPre", "ExecStart")
    } == {HOME}


def test_services_name_what_the_file_declares() -> None:
    assert set(SERVICES) == {"database", *OURS}
    for name, service in SERVICES.items():
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"]), name
        assert set(service["networks"]) <= set(COMPOSE["networks"]), name
        assert set(service.get("depends_on", {})) <= set(SERVICES), name
        assert "ports" not in service, "nothing listens at an address of the machine"
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or source == "./studies" or (DEPLOY / source).is_file(), volume
    assert {*COMPOSE["secrets"]} == {one for service in SERVICES.values() for one in service.get("secrets", [])}
    build = SERVICES["aggregator"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()


def test_each_waits_for_what_it_needs_and_is_asked_how_it_is() -> None:
    assert SERVICES["prepare"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert SERVICES["aggregator"]["depends_on"]["prepare"] == {"condition": "service_completed_successfully"}
    assert _health("database")[0] == "pg_isready"
    assert SERVICES["prepare"]["restart"] == "no"
    assert {SERVICES[name]["restart"] for name in ("database", "aggregator")} == {"unless-stopped"}


def test_containers_have_few_rights_and_the_database_no_way_out() -> None:
    assert COMPOSE["networks"]["inside"]["internal"] is True
    assert SERVICES["database"]["networks"] == SERVICES["prepare"]["networks"] == ["inside"]
    for name in OURS:
        service = SERVICES[name]
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
    assert all(service["security_opt"] == ["no-new-privileges:true"] for service in SERVICES.values())
    dockerfile = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert (
        re.search(r"^USER anonml$", dockerfile, re.MULTILINE)
        and "apt-get install --yes --no-install-recommends tor" in dockerfile
    )


def test_no_secret_and_no_foreign_host_stands_in_the_files() -> None:
    images = [service["image"] for service in SERVICES.values()]
    images += re.findall(r"^FROM (\S+)", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    named = {name for name, _, _digest in (image.partition("@sha256:") for image in images)}
    assert sorted(named) == ["anonml", "postgres:15", "python:3.12-slim"], "plain names, of no registry"
    foreign = [image for image in images if image != "anonml"]
    assert all(re.fullmatch(r"[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}", image) for image in foreign), "a tag can be moved"
    for path in DEPLOY.iterdir():
        text = path.read_text("utf-8")
        assert not re.search(r"https?://|(?<![$/])\bpassword[=:] *['\"]?\w", text, re.IGNORECASE), path.name


def test_the_password_is_in_no_programs_arguments(tmp_path: Path) -> None:
    """The shell's own words alone have it. A program of ours and of the system is told by a pipe."""
    (line,) = SERVICES["prepare"]["command"]
    kept, seen = tmp_path / "password", tmp_path / "seen"
    kept.write_text("s3cret")
    program = tmp_path / "anonml"
    program.write_text(f'#!/bin/sh\n{{ echo "$@"; tr "\\0" " " < /proc/$PPID/cmdline; cat; }} > {seen}\n')
    program.chmod(0o755)
    script = line.replace("$$", "$").replace("/run/secrets/database_password", str(kept))
    subprocess.run(["sh", "-c", script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
    told = seen.read_text()
    assert told.count("s3cret") == 1 and told.endswith("postgresql+asyncpg://anonml:s3cret@database/anonml")
    assert "s3cret" not in told.splitlines()[0]


def test_an_image_installs_each_package_by_its_hash() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text("utf-8")
    installs = re.findall(r"pip install [^&\n]+", dockerfile)
    assert len(installs) == 2 and all("--no-deps" in one for one in installs)
    assert "--require-hashes" in installs[0] and "--no-index" in installs[1]
    for lock in re.findall(r"-r (\S+)", installs[0]):
        assert f"locks/{lock}" in dockerfile and (DEPLOY.parent / "locks" / lock).is_file(), lock
    locked = "".join((DEPLOY.parent / "locks" / lock).read_text() for lock in re.findall(r"-r (\S+)", installs[0]))
    assert "asyncpg==" in locked and "sqlalchemy==" in locked


def test_the_server_keeps_nothing_that_the_aggregator_refuses() -> None:
    kept = dict(settings_of(DEPLOY / "server.conf"))
    assert {name: kept[name] for name in _DEMANDED} == {name: advised for name, (_, advised) in _DEMANDED.items()}
    assert "config_file=/etc/anonml/server.conf" in SERVICES["database"]["command"]


def test_the_unit_is_hardened() -> None:
    settings = dict(settings_of(UNIT))
    for name in (
        "NoNewPrivileges",
        "PrivateTmp",
        "PrivateDevices",
        "ProtectHome",
        "RestrictNamespaces",
        "LockPersonality",
    ):
        assert settings[name] == "yes", name
    assert settings["ProtectSystem"] == "strict" and settings["ReadWritePaths"] == "/var/lib/anonml"
    assert settings["CapabilityBoundingSet"] == "" and settings["User"] == "anonml"
    assert (settings["Restart"], settings["KillMode"]) == ("always", "mixed")


@needs_systemd
@pytest.mark.process
def test_systemd_reads_the_unit_without_a_complaint(tmp_path: Path) -> None:
    """With a program that exists here in place of ours. Exposure is at most 2 of 10, by systemd's own count."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text("utf-8").replace(PROGRAM, sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    score = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", str(unit)]
    judged = subprocess.run(score, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout[-300:]
    unit.write_text(unit.read_text("utf-8").replace("ProtectSystem=strict", "ProtectSystem=stricter"))
    wrong = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert "protect system" in wrong.stderr, "a word that systemd does not know is told"


@pytest.mark.postgres
def test_the_settings_are_ones_that_the_server_has(postgres: Server) -> None:
    names = [name for name, _ in settings_of(DEPLOY / "server.conf")]
    listed = ", ".join(f"'{name}'" for name in names)
    assert int(postgres.run(f"SELECT count(*) FROM pg_settings WHERE name IN ({listed})")) == len(names)
