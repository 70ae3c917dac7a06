"""A run that gets a stop signal stops, and prints that it does."""

import os
import signal
import subprocess
import sys

import pytest

from patience import patience


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_with_exit_0(idle_shop, number):
    command = [sys.executable, "-m", "springhouse", "run", "-p", str(idle_shop)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().endswith("running shop\n")
        running.send_signal(number)
        out, err = running.communicate(timeout=patience(60))
    assert running.returncode == 0
    assert err == "stopping after the running commits, once more to stop at once\n"
    assert out.startswith("0 rows in, 0 quarantined, 0 refreshes, 0 failures in ")


def test_it_leaves_after_so_long(springhouse, idle_shop):
    answer = springhouse("run", "--for", "10 ms", "-p", idle_shop)
    assert (answer.code, answer.err) == (0, "")
    assert "0 refreshes" in answer.out
