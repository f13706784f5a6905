"""The files of a deployed aggregator under attack: passwords of any form, and changes that take a protection away.

Docker is not run. The words of `prepare` are those of its shell, and the SQL is that of a real server. Each weakened
copy of the Compose file is found by a rule that is here.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from aggregator.store.dialects import begun_at
from aggregator.store.postgres import PostgresDatabase
from anon.errors import Malformed
from tests.support.deployed import DEPLOY, database_set_up
from tests.support.postgres import Server

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
SECRET = "s3cretpart"
PASSWORDS = (
    "$(touch made)", "`touch made`", "'; touch made; '", '"; touch made; "', "%s%s%n", "a\\nb\\\\", "two words", "* ?",
    "-n", "a|touch made", "a&touch made&", "${IFS}", "pässwörd", "'; DROP ROLE anonml; --", "x' SUPERUSER PASSWORD 'y",
    ":'password'", "\\! touch made", "E'\\''", "",
)  # fmt: skip


@pytest.mark.parametrize("password", PASSWORDS)
def test_a_password_is_told_as_it_is_and_runs_nothing(tmp_path: Path, password: str) -> None:
    (line,) = COMPOSE["services"]["prepare"]["command"]
    kept, seen, program = tmp_path / "kept", tmp_path / "seen", tmp_path / "anonml"
    kept.write_text(f"{password}\n")
    program.write_text(f"#!/bin/sh\ncat > {seen}\n")
    program.chmod(0o755)
    script = line.replace("$$", "$").replace("/run/secrets/database_password", str(kept))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LANG": "C.UTF-8"}
    subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment, check=True)
    assert seen.read_text() == f"postgresql+asyncpg://anonml:{password}@database/anonml"
    assert not (tmp_path / "made").exists()


@pytest.mark.postgres
def test_the_servers_password_is_a_password_whatever_is_in_it(postgres: Server, tmp_path: Path) -> None:
    """The role keeps its rights, and the server stores a digest of the password alone."""
    kept, script = tmp_path / "kept", tmp_path / "password.sql"
    script.write_text((DEPLOY / "password.sql").read_text("utf-8").replace("/run/secrets/database_password", str(kept)))
    psql = [postgres.programs / "psql", "-h", postgres.folder, "-U", "tester", "-Xq", "-v", "ON_ERROR_STOP=1", "-f"]
    rights = "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls FROM pg_roles"
    with database_set_up(postgres):
        for password in PASSWORDS:
            kept.write_text(f"{password}\n")
            subprocess.run([*psql, script, "postgres"], cwd=tmp_path, check=True, capture_output=True)
            assert postgres.run(f"{rights} WHERE rolname = 'anonml'") == "f|f|f|f|f", password
            held = postgres.run("SELECT rolpassword FROM pg_authid WHERE rolname = 'anonml'")
            assert held.startswith("SCRAM-SHA-256$") if password else not held
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("address", [
    f"postgresql+asyncpg://anonml:a@{SECRET}@database/anonml", f"postgresql+asyncpg://anonml:a@b:{SECRET}@database/x",
    f"postgresql+asyncpg://anonml:{SECRET}@[::1/anonml", f"postgresql+asyncpg://anonml:{SECRET}@database:x/anonml",
    f"postgresql://anonml:{SECRET}@database/anonml", SECRET, "",
])  # fmt: skip
def test_an_address_that_can_be_read_in_two_ways_is_refused_and_not_told(address: str) -> None:
    with pytest.raises(Malformed, match="a password's @ is written %40") as refused:
        begun_at(address)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("address", [
    f"postgresql+asyncpg://anonml:{SECRET}@database/anonml", f"postgresql+asyncpg://anonml:%40{SECRET}@database/anonml",
    f"postgresql+asyncpg://anonml@/anonml?host=/run/postgresql&password={SECRET}",
    f"postgresql+asyncpg://anonml@database/anonml?passfile={SECRET}",
    f"postgresql+asyncpg://anonml@database/anonml?ssl={SECRET}",
])  # fmt: skip
def test_messages_name_a_database_without_its_password(address: str) -> None:
    place = PostgresDatabase(address).place
    assert SECRET not in place and "anonml" in place


# Rules, each with files that break it


GIVEN_AWAY = ("ports", "privileged", "cap_add", "devices", "env_file")
SHARED = ("network_mode", "pid", "ipc", "userns_mode")


def weaknesses(compose: dict[str, Any]) -> list[str]:
    """The protections that a Compose file lacks."""
    found = []
    for name, service in compose["services"].items():
        found += [f"{name}: {key}" for key in GIVEN_AWAY if key in service]
        found += [f"{name}: the host's {key}" for key in SHARED if "host" in service.get(key, "")]
        if "no-new-privileges:true" not in service.get("security_opt", []) or len(service["security_opt"]) != 1:
            found.append(f"{name}: new privileges")
        if not ("build" in service or re.search(r"@sha256:[0-9a-f]{64}\Z", service["image"])):
            found.append(f"{name}: a tag")
        for volume in service.get("volumes", []):
            if volume.startswith(("/", "~", "..")) or (volume.startswith(".") and not volume.endswith(":ro")):
                found.append(f"{name}: {volume}")
        for key, value in service.get("environment", {}).items():
            if not key.endswith("_FILE") or not value.startswith("/run/secrets/"):
                found.append(f"{name}: {key} in the environment")
        if "build" in service and not (service.get("read_only") and service.get("cap_drop") == ["ALL"]):
            found.append(f"{name}: rights")
        if "outside" in service["networks"] and service.get("secrets"):
            found.append(f"{name}: secrets beside a way out")
    if not compose["networks"]["inside"].get("internal"):
        found.append("inside has a way out")
    if "outside" in compose["services"]["database"]["networks"]:
        found.append("the database has a way out")
    return found


def set_in(service: str, key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda compose: compose["services"][service].__setitem__(key, value)


WEAKENED: dict[str, Callable[[dict[str, Any]], None]] = {
    "a port": set_in("aggregator", "ports", ["8080:8080"]),
    "a port of the database": set_in("database", "ports", ["127.0.0.1:5432:5432"]),
    "privileged": set_in("aggregator", "privileged", True),
    "the host's network": set_in("aggregator", "network_mode", "host"),
    "the host's processes": set_in("aggregator", "pid", "host"),
    "a capability": set_in("aggregator", "cap_add", ["NET_ADMIN"]),
    "all capabilities": set_in("prepare", "cap_drop", []),
    "a disk that can be written": set_in("aggregator", "read_only", False),
    "new privileges": set_in("database", "security_opt", []),
    "no filter of calls": set_in("database", "security_opt", ["no-new-privileges:true", "seccomp:unconfined"]),
    "a tag": set_in("database", "image", "postgres:15"),
    "Docker's own socket": set_in("aggregator", "volumes", ["/var/run/docker.sock:/var/run/docker.sock"]),
    "the checkout": set_in("aggregator", "volumes", ["..:/src:ro"]),
    "studies that can be written": set_in("aggregator", "volumes", ["./studies:/studies"]),
    "a password in the environment": set_in("database", "environment", {"POSTGRES_PASSWORD": "x"}),
    "trust": set_in("database", "environment", {"POSTGRES_HOST_AUTH_METHOD": "trust"}),
    "a file of variables": set_in("aggregator", "env_file", [".env"]),
    "a secret that serves": set_in("aggregator", "secrets", ["superuser_password"]),
    "a way out of the database": set_in("database", "networks", ["inside", "outside"]),
    "a network with a way out": lambda compose: compose["networks"].__setitem__("inside", {}),
}


def test_the_compose_file_gives_nothing_away() -> None:
    assert weaknesses(COMPOSE) == []


@pytest.mark.parametrize("weakened", WEAKENED)
def test_each_weakened_compose_file_is_found(weakened: str) -> None:
    compose = deepcopy(COMPOSE)
    WEAKENED[weakened](compose)
    assert weaknesses(compose)


def test_the_image_is_built_of_what_is_locked_and_of_nothing_secret() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert ignored[0] == "*" and set(ignored[1:]) == {"!dist/*.whl", "!locks/*.txt"}
    copied = re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert copied and all(word.startswith(("locks/", "dist/anonml-")) for line in copied for word in line.split())
    assert not re.search(r"^(ADD|ARG)\b|\bcurl\b|\bwget\b|^USER root", DOCKERFILE, re.MULTILINE)
    installed = [line.split("pip install", 1)[1] for line in DOCKERFILE.splitlines() if "pip install" in line]
    options = {word for line in installed for word in line.split() if word.startswith("-")}
    assert len(installed) == 2 and options == {"--no-cache-dir", "--require-hashes", "--no-deps", "-r", "--no-index"}
    assert re.findall(r"^ENV (\S+)", DOCKERFILE, re.MULTILINE) == ["HOME=/var/lib/anonml"]
    last = [line.split()[0] for line in DOCKERFILE.splitlines() if re.match(r"(RUN|COPY|USER)\b", line)][-1]
    assert last == "USER", "nothing is done as root after it"
