"""`anonml doctor` says one next action per fault."""

import pytest
from typer.testing import CliRunner

import anonml
from anon.kit.diagnosis.checks import Check
from anon.kit.terminal import doctor
from anonml import COMMANDS, wiring


def test_a_missing_tor_fails_nothing_on_one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CHECKS", [lambda: Check("tor", False, "install it", needed=False)])
    done = CliRunner().invoke(doctor.app, [])
    assert done.exit_code == 0
    assert "on this machine alone (--loopback) needs none; for people elsewhere: install it" in done.output


def test_it_leaves_tellers_to_their_own_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line at the end, whatever else was found; what programs read has none."""
    for ok in (True, False):
        monkeypatch.setattr(doctor, "CHECKS", [lambda ok=ok: Check("storage", ok, "free some space")])
        done = CliRunner().invoke(doctor.app, [], obj=wiring())
        assert done.exit_code == (not ok)
        assert done.output.splitlines()[-1].endswith("with its --home if it has a folder of its own")
        assert "teller" not in CliRunner().invoke(doctor.app, ["--json"], obj=wiring()).output


def test_a_program_packed_for_peers_names_no_command_that_it_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CHECKS", [])
    others = {name: value for name, value in COMMANDS.items() if name != "teller"}
    monkeypatch.setattr(anonml, "COMMANDS", others)
    assert CliRunner().invoke(doctor.app, [], obj=wiring()).output == ""


def test_another_fault_says_nothing_of_tor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CHECKS", [lambda: Check("storage", False, "free some space")])
    done = CliRunner().invoke(doctor.app, [])
    assert done.exit_code == 1 and "storage: free some space" in done.output
