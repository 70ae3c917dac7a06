"""Errors that the code may ignore leave a line in the log, and others are raised."""

import logging

import pytest

from springhouse.logged_errors import passing

LOG = logging.getLogger("springhouse.test")


def test_an_error_that_passes_is_logged_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "springhouse"), passing(LOG, "nobody needs it", KeyError):
        raise KeyError("k")
    assert [record.message for record in caplog.records] == [
        "ignored (nobody needs it): KeyError: 'k'"
    ]


def test_any_other_error_is_raised() -> None:
    with pytest.raises(ValueError, match="x"), passing(LOG, "nobody needs it", KeyError):
        raise ValueError("x")
