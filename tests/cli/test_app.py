"""Exit codes, help, version, and the form of errors."""

import subprocess
import sys

import pytest

import springhouse as package

COMMANDS = ("init", "check", "run", "status", "plan", "query", "explain", "history", "vacuum")


def test_version(springhouse):
    assert springhouse("--version").out == f"springhouse {package.__version__}\n"


def test_help_names_every_command(springhouse):
    answer = springhouse("--help")
    assert answer.code == 0
    for command in COMMANDS:
        assert f" {command} " in answer.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(springhouse, command):
    answer = springhouse(command, "--help")
    assert answer.code == 0
    assert f"Usage: springhouse {command}" in answer.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["unknown"],
        ["status", "--unknown"],
        ["explain"],
        ["run", "--for", "soon"],
        ["run", "--once", "--for", "1 minute"],
        ["run", "-c", "springhouse.tracks"],
        ["query", "SELECT 1", "--format", "xml"],
        ["vacuum", "--retain", "long"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(springhouse, shop, arguments, monkeypatch):
    monkeypatch.chdir(shop)
    answer = springhouse(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert "Usage: springhouse" in answer.err


def test_a_wrong_duration_says_how_to_write_one(springhouse, shop):
    answer = springhouse("run", "--for", "soon", "-p", shop)
    assert '"soon" is not a duration' in answer.err
    assert "5 minutes" in answer.err


def test_a_users_mistake_is_1_with_a_hint_and_no_traceback(springhouse, shop):
    answer = springhouse("explain", "order", "-p", shop)
    assert answer.code == 1
    assert answer.out == ""
    assert answer.err == (
        'error: this project declares no table or view "order"\n'
        '  hint: Did you mean the table "orders"?\n'
    )


def test_an_unknown_setting_is_named_with_what_was_written(springhouse, shop):
    answer = springhouse("run", "--once", "-p", shop, "-c", "springhouse.track=3")
    assert answer.code == 1
    assert answer.err == (
        "error: -c springhouse.track=3: unknown configuration key"
        ' "springhouse.track"\n  hint: Did you mean "springhouse.tracks"?\n'
    )


def test_help_does_not_wait_for_spark_and_arrow():
    code = (
        "import sys; from springhouse.cli.app import app;"
        "print({'pyspark', 'pyarrow', 'deltalake'} & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"
