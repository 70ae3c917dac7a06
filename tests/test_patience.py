"""Time-outs of tests grow with the load of the machine."""

import pytest

from patience import SETTING, patience, slowness


def test_a_time_out_is_generous() -> None:
    assert patience(10.0) >= 40.0


def test_whoever_knows_his_machine_can_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    before = slowness()
    monkeypatch.setenv(SETTING, "1000")
    assert patience(1.0) >= max(4_000.0, before)
