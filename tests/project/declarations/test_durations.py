import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springhouse.errors import DeclarationError
from springhouse.project.declarations.durations import HINT, duration_seconds


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("0", 0),
        ("0 seconds", 0),
        ("500 ms", 0.5),
        ("90s", 90),
        ("1 second", 1),
        ("5 minutes", 300),
        ("5min", 300),
        ("1.5 hours", 5400),
        ("1h 30m", 5400),
        ("1h30m", 5400),
        ("1 hour, 30 minutes", 5400),
        ("1 hour and 30 minutes", 5400),
        ("1 day", 86_400),
        ("1 week", 604_800),
        ("  2  DAYS ", 172_800),
        ("INTERVAL 1 DAY", 86_400),
        ("INTERVAL '2' HOURS", 7_200),
        ("interval '2 hours'", 7_200),
        ("INTERVAL 1 DAY 6 HOURS", 108_000),
    ],
)
def test_a_duration_as_people_write_it(written: str, seconds: float) -> None:
    assert duration_seconds(written) == seconds


@pytest.mark.parametrize(
    "written",
    ["", "soon", "5", "minutes", "-5 minutes", "5 months", "1 year", "5 minutes late", "1h -1m"],
)
def test_what_is_not_a_duration_is_refused_with_examples(written: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        duration_seconds(written, where="a.sql:3")
    assert str(caught.value) == f'a.sql:3: "{written}" is not a duration\n  hint: {HINT}'


@given(
    st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.booleans()
)
def test_amounts_add_up_however_they_are_spaced(
    days: int, hours: int, minutes: int, seconds: int, spaced: bool
) -> None:
    gap = " " if spaced else ""
    text = gap.join([f"{days}d", f"{hours}h", f"{minutes}m", f"{seconds}s"])
    assert duration_seconds(text) == days * 86_400 + hours * 3_600 + minutes * 60 + seconds


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_an_error(text: str) -> None:
    with contextlib.suppress(DeclarationError):
        assert duration_seconds(text) >= 0
