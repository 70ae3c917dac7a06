from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from springhouse.project.declarations.declaration import Place
from springhouse.project.declarations.names import Names
from springhouse.project.python.python_functions import DeclaredFunction, find_reads, find_sql

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Execute a file that sees some names, and return its globals."""

    def execute(text: str, **names: Any) -> dict[str, Any]:
        path = tmp_path / "a.py"
        path.write_text(text, encoding="utf-8")
        exec(compile(text, str(path), "exec"), names)
        return names

    return execute


def told(make: Make, text: str) -> list[str]:
    reads = find_reads(make(text)["f"], Place("a.py", 1), Names(database="shop"))
    return [f"{r.reading.value} {r.name} at {r.place.line}" for r in reads]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return spark.table('Shop.Orders')", ["table orders at 2"]),
        ("return spark.read.table('orders')", ["table orders at 2"]),
        ("return spark.readStream.table('orders')", ["stream orders at 2"]),
        ("return spark.readStream.option('a', 'b').table('orders')", ["stream orders at 2"]),
        ("return session().table('a').join(spark.table('b'))", ["table a at 2", "table b at 2"]),
        ("x = spark.table('a')\n    return x.union(spark.table('a'))", ["table a at 2"]),
        ("return spark.sql('SELECT * FROM a JOIN shop.b')", ["table a at 2", "table b at 2"]),
        (
            "return spark.sql('''SELECT *\n FROM STREAM(a),\n delta.`p`''')",
            ["stream a at 3", "delta p at 4"],
        ),
        ("return spark.range(10)", ["other f at 1"]),
        ("return spark.read.csv('x')", ["other f at 1"]),
        ("return spark.readStream.format('rate').load()", ["other f at 1"]),
        (
            "return spark.table('a').join(spark.read.parquet('x'))",
            ["table a at 2", "other f at 1"],
        ),
        ("return spark.table(f'orders_{x}')", ["other f at 1"]),
        ("return spark.read.table(name)", ["other f at 1"]),
        ("return spark.sql('SELECT * FROM {df}', df=x)", ["other f at 1"]),
        ("return spark.sql('SHOW TABLES')", ["other f at 1"]),
    ],
)
def test_what_a_function_reads(make: Make, body: str, expected: list[str]) -> None:
    assert told(make, f"def f():\n    {body}\n") == expected


def test_the_functions_that_it_calls_are_read_too(make: Make) -> None:
    text = (
        "def orders():\n    return spark.table('orders')\n"
        "def f():\n    return orders().join(spark.table('customers'))\n"
    )
    assert told(make, text) == ["table customers at 4", "table orders at 2"]


def test_a_lambda_and_an_object_that_can_be_called(make: Make) -> None:
    assert told(make, "f = lambda: spark.table('a')") == ["table a at 1"]
    assert told(make, "class C:\n    def __call__(self): ...\nf = C()") == ["other C at 1"]


def test_a_decorated_function_is_found_and_its_decorators_are_not_read(make: Make) -> None:
    text = "keep = lambda name: lambda f: f\n@keep(\n'x')\ndef f():\n    return spark.table('a')\n"
    assert told(make, text) == ["table a at 5"]


def test_a_variable_of_an_enclosing_loop_keeps_its_value(make: Make) -> None:
    made = make(
        "def make(declare):\n    for n in [1, 2]:\n        def f(): return n\n        declare(f)\n"
    )
    declared: list[DeclaredFunction] = []
    made["make"](lambda f: declared.append(DeclaredFunction.now(f)))
    assert [each.function() for each in declared] == [2, 2]
    assert [each.bound()() for each in declared] == [1, 2]


def test_a_function_that_sees_what_it_saw_is_left_alone(make: Make) -> None:
    function = make("n = 1\ndef f(): return n\n")["f"]
    assert DeclaredFunction.now(function).bound() is function


def test_what_is_defined_later_in_the_file_is_found_by_the_copy_too(make: Make) -> None:
    names = make("n = 1\ndef f(): return n + later()\n")
    declared = DeclaredFunction.now(names["f"])
    names["n"] = 5
    names["later"] = lambda: 10
    assert declared.bound()() == 11


def test_a_fingerprint_changes_with_the_file_and_with_plain_values(make: Make) -> None:
    def fingerprint(text: str, content: str = "file") -> str:
        return DeclaredFunction.now(make(text)["f"]).fingerprint(content)

    one = fingerprint("n = 1\ndef f(m=2): return n\n")
    assert fingerprint("n = 1\ndef f(m=2): return n\n") == one
    assert fingerprint("n = 1\ndef f(m=2): return n\n", "other file") != one
    assert fingerprint("n = 2\ndef f(m=2): return n\n") != one
    assert fingerprint("n = 1\ndef f(m=3): return n\n") != one


SESSION = object()


def as_sql(make: Make, text: str, before: str = "") -> str | None:
    names = make(f"spark = SESSION\n{before}def f():\n{text}\n", SESSION=SESSION)
    found = find_sql(
        DeclaredFunction.now(names["f"]), "a.py", Names(database="shop"), SESSION, "file"
    )
    return None if found is None else f"{found.place.line}: {found.text}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    return spark.sql('SELECT * FROM orders')", "3: SELECT * FROM orders"),
        ("    'What it is.'\n    return spark.sql('SELECT 1')", "4: SELECT 1"),
        ("    return spark.sql('SELECT id '\n        'FROM orders')", "3: SELECT id FROM orders"),
        ("    return spark.sql('''\n  SELECT id\n  FROM a;\n''')", "4: SELECT id\n  FROM a"),
        ("    return spark.sql('SELECT 1 -- one')", "3: SELECT 1"),
        ("    return spark.sql('SELECT * FROM delta.`p`')", "3: SELECT * FROM delta.`p`"),
        ("    return spark.sql('SELECT * FROM range(3)')", "3: SELECT * FROM range(3)"),
    ],
)
def test_a_function_that_only_calls_spark_sql_is_a_query_in_sql(
    make: Make, body: str, expected: str
) -> None:
    assert as_sql(make, body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "    return spark.table('orders')",
        "    return spark.sql('SELECT * FROM orders').distinct()",
        "    return spark.sql(f'SELECT * FROM orders_{region}')",
        "    return spark.sql('SELECT * FROM ' + 'orders')",
        "    return spark.sql('SELECT :n', {'n': 1})",
        "    return spark.sql('SELECT :n', args={'n': 1})",
        "    return spark.sql('SELECT * FROM {df}', df=orders)",
        "    return spark.sql(*texts)",
        "    return spark.sql(later)",
        "    return other.sql('SELECT 1')",
        "    return session().sql('SELECT 1')",
        "    return spark.sql('SHOW TABLES')",
        "    return spark.sql('SELECT 1; SELECT 2')",
        "    return spark.sql('SELECT * FROM STREAM(orders)')",
        "    return spark.sql('SELECT (1')",
        "    return spark.sql('')",
        "    spark.sql('SET a = b')\n    return spark.sql('SELECT 1')",
        "    df = spark.sql('SELECT 1')\n    return df",
        "    'Only words.'",
    ],
)
def test_a_function_that_does_more_stays_one(make: Make, body: str) -> None:
    assert as_sql(make, body, "other = object()\nnumber = 5\n") is None


def test_so_does_one_with_parameters_and_one_whose_spark_is_not_the_session(make: Make) -> None:
    names = make(
        "spark = SESSION\nmine = object()\n"
        "def with_default(query='SELECT 1'): return spark.sql(query)\n"
        "def with_own(spark=mine): return spark.sql('SELECT 1')\n"
        "plain = lambda: spark.sql('SELECT 1')\n",
        SESSION=SESSION,
    )
    for name in ("with_default", "with_own", "plain"):
        declared = DeclaredFunction.now(names[name])
        assert find_sql(declared, "a.py", Names(), SESSION, "file") is None
    names["spark"] = names["mine"]
    assert (
        find_sql(DeclaredFunction.now(names["with_own"]), "a.py", Names(), SESSION, "file") is None
    )


def test_a_constant_of_the_file_is_as_good_as_a_literal(make: Make) -> None:
    call = "    return spark.sql(QUERY)"
    assert as_sql(make, call, "QUERY = '''\nSELECT 1'''\n") == "3: SELECT 1"
    assert as_sql(make, call, "QUERY: str = 'SELECT 1'\n") == "2: SELECT 1"
    # A text that code put together has no line of its own, so the line that uses it is known.
    assert as_sql(make, call, "n = 1\nQUERY = f'SELECT {n}'\n") == "5: SELECT 1"
    assert as_sql(make, call, "QUERY = ['SELECT 1']\n") is None


def test_in_a_loop_it_is_the_constant_of_that_turn(make: Make) -> None:
    names = make("spark = SESSION\nq = 'SELECT 1'\ndef f(): return spark.sql(q)", SESSION=SESSION)
    declared = DeclaredFunction.now(names["f"])
    names["q"] = "SELECT 2"
    found = find_sql(declared, "a.py", Names(), SESSION, "file")
    assert found is not None
    assert found.text == "SELECT 1"


def test_what_it_reads_are_spans_of_its_text(make: Make) -> None:
    names = make("def f(): return spark.sql(' SELECT * FROM shop.orders o')", spark=SESSION)
    found = find_sql(
        DeclaredFunction.now(names["f"]), "a.py", Names(database="shop"), SESSION, "file"
    )
    assert found is not None
    (read,) = found.references
    assert (found.text[read.start : read.end], read.name) == ("shop.orders", "orders")
    assert found.fingerprint == "file"
