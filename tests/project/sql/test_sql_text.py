import pytest
from hypothesis import given
from hypothesis import strategies as st

from springhouse.project.sql.sql_text import SqlText, split_statements, string_value, tokenize
from springhouse.project.sql.tokenizer import is_name, is_string


def statements(text: str) -> list[str]:
    sql = SqlText(text, "a.sql")
    tokens, unclosed = tokenize(sql)
    assert unclosed is None
    return [sql.slice(statement) for statement in split_statements(tokens)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (";;", []),
        ("a; b", ["a", "b"]),
        ("a ; b ;", ["a", "b"]),
        ("a -- ; not here\n; b", ["a", "b"]),
        ("a /* ; 'nor here */ b", ["a /* ; 'nor here */ b"]),
        ("/* a /* nested; */ comment; */ b; c", ["b", "c"]),
        ("a ';' b; c", ["a ';' b", "c"]),
        ("a 'it''s; fine' ; b", ["a 'it''s; fine'", "b"]),
        (r"a 'it\'s; fine' ; b", [r"a 'it\'s; fine'", "b"]),
        ("a r'\\'; b", ["a r'\\'", "b"]),
        ('a "x;y"; b', ['a "x;y"', "b"]),
        ("a `x;``y`; b", ["a `x;``y`", "b"]),
        ("a '-- no comment'; b", ["a '-- no comment'", "b"]),
    ],
)
def test_statements_end_at_semicolons_outside_of_quotes_and_comments(
    text: str, expected: list[str]
) -> None:
    assert statements(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n'b", "a.sql:2: this ' is never closed"),
        ("a\n\n`b", "a.sql:3: this ` is never closed"),
        ("a /* b\n/* c */", "a.sql:1: this comment is never closed"),
    ],
)
def test_what_is_never_closed_is_an_error_where_it_was_opened(text: str, message: str) -> None:
    assert str(tokenize(SqlText(text, "a.sql"))[1]) == message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'plain'", "plain"),
        ("'it''s'", "it's"),
        (r"'a\tb\\c\'d'", "a\tb\\c'd"),
        (r"'50\%'", r"50\%"),
        (r"'\u00e9\101'", "éA"),
        (r"r'\d'", r"\d"),
        ("\"x\" 'y'", "xy"),
        ("12", None),
    ],
)
def test_the_value_of_a_string_is_what_spark_makes_of_it(text: str, value: str | None) -> None:
    assert string_value(text, tokenize(SqlText(text, ""))[0]) == value


PIECES = st.sampled_from(
    ["SELECT", "a", "`b;c`", "'d;e'", '"f"', "-- g;\n", "/* h; */", "(", ")", ",", "=>", "1"]
)


@given(st.lists(st.lists(PIECES, max_size=6), max_size=5))
def test_joining_statements_and_splitting_them_again_loses_nothing(pieces: list[list[str]]) -> None:
    wanted = [" ".join(each) for each in pieces]
    bare = [statement for each in wanted for statement in statements(each)]
    assert statements("\n;".join(wanted)) == bare


@given(st.text(alphabet="ab ;'\"`-/*()\n\\.=>", max_size=40))
def test_tokens_are_spans_in_order_with_only_blanks_and_comments_between(text: str) -> None:
    sql = SqlText(text, "")
    tokens, _ = tokenize(sql)
    at = 0
    for token in tokens:
        assert token.start >= at
        assert sql.slice([token]) == text[token.start : token.end + 1] != ""
        between = text[at : token.start]
        assert not between.strip() or "--" in between or "/*" in between
        assert is_string(token) or is_name(token) or token.text in text
        at = token.end + 1
