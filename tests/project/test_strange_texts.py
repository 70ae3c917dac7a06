"""Any text in the files of a project is understood, or reported with its file and line."""

import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from springhouse.errors import ProjectErrors
from springhouse.project.declarations.contents import Contents
from springhouse.project.declarations.declaration import Project, Table
from springhouse.project.declarations.names import Names
from springhouse.project.load import load
from springhouse.project.sql.from_sql import read_sql

PIPELINE = (
    "name: shop\nstorage: storage\n"
    "libraries:\n  - glob:\n      include: all/**\n"
    'configuration:\n  spark.sql.ansi.enabled: "true"\n'
)
SQL = """SET spark.sql.session.timeZone = UTC;
-- what was ordered
CREATE OR REFRESH STREAMING TABLE orders (
  id BIGINT COMMENT 'it''s, really', tags MAP<STRING, ARRAY<INT>>,
  CONSTRAINT few EXPECT (id < 10 AND id <> 3), CONSTRAINT some EXPECT (id >= 1)
) COMMENT 'all; of them' TBLPROPERTIES ('owner' = 'ana', 'springhouse.staleness' = '1 minute')
AS SELECT id, tags FROM STREAM read_files('data', format => 'json', schema => 'id INT, tags INT');
CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM orders WHERE id IN (1, 2);
CREATE FLOW more AS INSERT INTO orders BY NAME SELECT offset AS id FROM STREAM sample(rate => '1');
"""
WHERE = re.compile(r"(spark-pipeline\.yml|all/a\.sql):[1-9]\d*")
FUZZ = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def loaded(folder: Path, pipeline: bytes, sql: bytes) -> Project | list[str]:
    """The project, or the places of its errors: no text may cause any other result."""
    (folder / "all").mkdir(exist_ok=True)
    (folder / "spark-pipeline.yml").write_bytes(pipeline)
    (folder / "all" / "a.sql").write_bytes(sql)
    try:
        return load(folder)
    except ProjectErrors as found:
        told = found
    places = [str(error.where) for error in told.errors]
    assert [place for place in places if not WHERE.fullmatch(place)] == [], str(told)
    assert str(told).encode()  # It can be printed.
    return places


def read(text: str) -> Contents:
    return read_sql(text, "a.sql", Names())


# Lists

ATOMS = st.sampled_from(
    [
        *("a", "1", "'x,(y'", "'it''s'", '"a)<b"', "`a,<b`", "f(a, b)", "array(1, 2)[0]", "-1.5"),
        *("CAST(a AS MAP<STRING, ARRAY<INT>>)['k']", "CASE WHEN a < b THEN 1 ELSE 2 END"),
        *("struct(a, b)", "map('<', '>')['<']", "(a, b)", "x -> x < 3", "interval 1 day"),
    ]
)
OPERATORS = st.sampled_from(["<", ">", "<=", ">=", "<>", "!=", "<=>", "=", "<<", ">>", "AND", "||"])


@st.composite
def conditions(draw: st.DrawFn) -> str:
    parts = [draw(ATOMS)]
    for operator, atom in draw(st.lists(st.tuples(OPERATORS, ATOMS), max_size=4)):
        blank = draw(st.sampled_from([" ", "", "\n"])) if not operator.isalpha() else " "
        parts += [blank, operator, blank, atom]
    return "".join(parts)


@given(st.lists(conditions(), min_size=1, max_size=5))
@example(["a < 10", "b > 1"])
@example(["a < 10", "b >= 1", "c <=> 3"])
@FUZZ
def test_operators_do_not_break_a_list_of_expectations(texts: list[str]) -> None:
    listed = ", ".join(f"CONSTRAINT c{i} EXPECT ({text})" for i, text in enumerate(texts))
    contents = read(f"CREATE STREAMING TABLE t (id MAP<STRING, INT>, {listed}, z INT) AS SELECT 1;")
    if contents.errors:
        # A text that is no condition is an error; a list that falls apart never is.
        assert all("does not parse" in error.problem for error in contents.errors)
        return
    table = contents.declarations[0]
    assert isinstance(table, Table)
    assert table.schema == "id MAP<STRING, INT>, z INT"
    assert [expectation.condition for expectation in table.expectations] == texts


# Semicolons

STATEMENTS = (
    "SET spark.a = 2",
    "SET spark.a = x y 'z'",
    "SET TIME ZONE 'UTC'",
    "SET CATALOG spark_catalog",
    "USE default",
    "CREATE STREAMING TABLE {} AS SELECT * FROM STREAM sample()",
    "CREATE STREAMING TABLE {}",
    "CREATE OR REFRESH STREAMING TABLE {} (a INT) COMMENT 'x'",
    "CREATE MATERIALIZED VIEW {} AS SELECT 1 AS a",
    "CREATE TEMPORARY VIEW {} AS SELECT 1 AS a",
    "CREATE VIEW {} AS SELECT 1 AS a",
    "CREATE FLOW {} AS INSERT INTO x SELECT 1 AS a",
)


def test_a_forgotten_semicolon_is_told_where_it_is_missing() -> None:
    for first, second in product(STATEMENTS, STATEMENTS):
        for between in ("\n", " ", "\n\n", " -- no end\n"):
            text = first.format("first_") + between + second.format("second_") + ";"
            found = {str(error.where) for error in read(text).errors}
            ends = (len(first.format("first_")), len(first.format("first_")) + len(between))
            lines = {f"a.sql:{1 + text.count(chr(10), 0, end)}" for end in ends}
            assert found, text
            assert found <= lines, text


# Names


@given(st.text(st.characters(codec="utf-8"), max_size=40))
@example("..")
@example(".")
@example("")
@example(" ")
@example("a/../../b")
@example("a\0b")
@example("a\nb")
@example("n" * 300)
@example("订" * 90)
@example("my orders")
@example("a%20b")
@example("COM1:")
@FUZZ
def test_a_name_is_one_folder_or_an_error(tmp_path: Path, name: str) -> None:
    text = f"\nCREATE STREAMING TABLE `{name.replace('`', '``')}` AS SELECT * FROM STREAM sample();"
    found = loaded(tmp_path, PIPELINE.encode(), text.encode())
    if isinstance(found, list):
        assert all(place.startswith("all/a.sql:") for place in found)
        return
    (normal,) = found.tables
    assert normal == Names().normal([name])
    tables = tmp_path / "storage" / "tables"
    folder = tables / normal
    folder.mkdir(parents=True, exist_ok=True)
    assert folder.resolve().parent == tables.resolve()
    assert re.fullmatch(r"[\w -]+", normal)
    assert Names().parse(normal) == normal


@pytest.mark.parametrize("name", ["..", ".", "", " ", "a\0b", "a/b", "n" * 300, "_x", "a ", "a\tb"])
def test_names_that_no_folder_could_have_are_told(tmp_path: Path, name: str) -> None:
    for kind in ("STREAMING TABLE", "MATERIALIZED VIEW", "TEMPORARY VIEW"):
        query = "SELECT * FROM STREAM sample()" if kind == "STREAMING TABLE" else "SELECT 1 AS a"
        text = f"\nCREATE {kind} `{name}` AS {query};"
        assert loaded(tmp_path, PIPELINE.encode(), text.encode()) == ["all/a.sql:2"], kind


# Bytes


@pytest.mark.parametrize("byte", [*range(32), 0x7F, 0x80, 0x85, 0xA0, 0xC0, 0xFE, 0xFF])
def test_every_byte_anywhere_in_yaml_is_understood_or_told(tmp_path: Path, byte: int) -> None:
    content = PIPELINE.encode()
    for at in range(0, len(content), 3):
        loaded(tmp_path, content[:at] + bytes([byte]) + content[at:], SQL.encode())


def test_control_characters_and_bad_bytes_are_told_with_their_line(tmp_path: Path) -> None:
    for bad in (b"\x00", b"\x07", b"\x1b", b"\xff", b"\xc3\x28", b"\x7f"):
        yaml = PIPELINE.encode().replace(b"storage: storage", b"storage: sto" + bad + b"rage")
        assert loaded(tmp_path, yaml, SQL.encode()) == ["spark-pipeline.yml:2"], bad
        sql = SQL.encode().replace(b"counted AS", b"counted" + bad + b" AS")
        assert loaded(tmp_path, PIPELINE.encode(), sql) == ["all/a.sql:8"], bad
    escaped = PIPELINE.replace("storage: storage", 'storage: "sto\\x07rage"')
    assert loaded(tmp_path, escaped.encode(), SQL.encode()) == ["spark-pipeline.yml:2"]


PIECES = re.findall(r"\w+|\s+|.", SQL)
STRANGE = st.sampled_from(
    [
        *"<>(),;.'`\"\\[]{}=*/-",
        *("=>", "--", "/*", "*/", "\0", "\u200b", "\ud7ff", "🦆", "\n", "  ", "1e9", "${env:NOPE}"),
        *("CREATE", "AS", "SELECT", "SET", "STREAM", "FROM", "EXPECT", "TBLPROPERTIES", "*", "x.y"),
    ]
)


@given(st.lists(st.tuples(st.integers(0, len(PIECES) - 1), st.integers(0, 2), STRANGE), max_size=4))
@FUZZ
def test_a_damaged_project_is_told_with_file_and_line(
    tmp_path: Path, damages: list[tuple[int, int, str]]
) -> None:
    pieces = list(PIECES)
    for at, kind, what in damages:
        pieces[at] = {0: what, 1: pieces[at] + what, 2: ""}[kind]
    text = "".join(pieces)
    found = loaded(tmp_path, PIPELINE.encode(), text.encode())
    if not damages:
        assert isinstance(found, Project)


def test_a_pipeline_file_of_other_shapes_is_told(tmp_path: Path) -> None:
    nested = "name: " + "[" * 5000 + "]" * 5000
    for text in ("", "- a\n", "a", "name: !!python/name:os.system\n", "name: *a\n", nested):
        places = loaded(tmp_path, text.encode(), b"")
        assert isinstance(places, list)
        assert set(places) == {"spark-pipeline.yml:1"}
