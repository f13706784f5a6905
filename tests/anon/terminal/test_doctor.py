"""`anonml doctor` says one next action per fault."""

import pytest
from typer.testing import CliRunner

from anon.diagnosis import Check
from anon.terminal import doctor


def test_a_missing_tor_fails_nothing_on_one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CHECKS", [lambda: Check("tor", False, "install it", needed=False)])
    done = CliRunner().invoke(doctor.app, [])
    assert done.exit_code == 0
    assert "on this machine alone (--loopback) needs none; for people elsewhere: install it" in done.output


def test_another_fault_says_nothing_of_tor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CHECKS", [lambda: Check("storage", False, "free some space")])
    done = CliRunner().invoke(doctor.app, [])
    assert done.exit_code == 1 and "storage: free some space" in done.output
