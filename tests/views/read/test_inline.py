"""The query of a view as one text over plain names, with the text of its temporary views."""

from collections.abc import Callable
from pathlib import Path

import pytest
from scenario import schema

from springhouse.project.declarations.declaration import Project, ReadMode
from springhouse.project.load import load
from springhouse.views.algebra.query_tree import Scan, walk
from springhouse.views.read.inline import Inlined, inlined
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.read.parse_query import parse

PIPELINE = "name: shop\nstorage: storage\ndatabase: shop\nlibraries:\n  - glob: {include: all/**}\n"
TABLES = """
    CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('o', format => 'text');
    CREATE STREAMING TABLE customers AS SELECT * FROM STREAM read_files('c', format => 'text');
    CREATE TEMPORARY VIEW known AS SELECT * FROM orders JOIN customers USING (id);
    CREATE TEMPORARY VIEW better_known AS SELECT id FROM Known k WHERE id > 1 -- of course
    ;
"""

Inline = Callable[[str], Inlined]


@pytest.fixture
def project(tmp_path: Path) -> Callable[[dict[str, str]], Project]:
    """A project with the tables, and with these texts as its other files."""

    def loaded(files: dict[str, str]) -> Project:
        for name, text in {"spark-pipeline.yml": PIPELINE, "all/a.sql": TABLES, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return load(tmp_path)

    return loaded


@pytest.fixture
def inline(project: Callable[[dict[str, str]], Project]) -> Inline:
    """The text of a view with this query."""

    def of(query: str) -> Inlined:
        declared = project({"all/b.sql": f"CREATE MATERIALIZED VIEW v AS {query}"})
        return inlined(declared, declared.views["v"])

    return of


def scans(found: Inlined) -> list[str]:
    """The inputs that the compiler finds in the text."""
    schemas = {name: schema("id int, country string") for name in found.inputs}
    return [node.input for node in walk(parse(found.text, schemas).root) if isinstance(node, Scan)]


def test_a_table_keeps_its_name_and_is_still_called_so(inline: Inline) -> None:
    found = inline(
        "SELECT orders.id, c.id AS other FROM Orders JOIN shop.customers c ON orders.id = c.id"
    )
    assert dict(found.inputs) == {
        "orders": (ReadMode.TABLE, "orders"),
        "customers": (ReadMode.TABLE, "customers"),
    }
    assert found.text == (
        "SELECT orders.id, c.id AS other FROM `orders` AS `orders` JOIN `customers` c "
        "ON orders.id = c.id"
    )


def test_a_table_that_is_read_twice_is_one_input(inline: Inline) -> None:
    found = inline("SELECT a.id FROM orders a JOIN shop.orders b ON a.id = b.id")
    assert list(found.inputs) == ["orders"]
    assert scans(found) == ["orders", "orders"]


def test_temporary_views_are_written_out_one_in_the_other(inline: Inline) -> None:
    found = inline("SELECT better_known.id FROM better_known")
    assert "known k" not in found.text.lower().replace("better_known", "")
    assert list(found.inputs) == ["orders", "customers"]
    assert scans(found) == ["orders", "customers"]


def test_a_delta_table_of_others_is_called_by_the_end_of_its_path(inline: Inline) -> None:
    found = inline("SELECT a.id FROM delta.`/data/raw-events/` a JOIN delta.`s3://b/orders` b")
    assert dict(found.inputs) == {
        "raw_events": (ReadMode.DELTA, "/data/raw-events/"),
        "orders": (ReadMode.DELTA, "s3://b/orders"),
    }


def test_two_inputs_never_share_a_name(inline: Inline) -> None:
    found = inline("SELECT a.id FROM orders a, delta.`/x/Orders` b, delta.`/y/orders` c")
    assert list(found.inputs) == ["orders", "Orders_2", "orders_3"]
    assert scans(found) == ["orders", "Orders_2", "orders_3"]


def test_a_cte_that_is_called_like_a_table_is_no_input(inline: Inline) -> None:
    found = inline("WITH orders AS (SELECT id FROM customers) SELECT id FROM orders")
    assert list(found.inputs) == ["customers"]


def test_a_cte_does_not_capture_the_table_of_a_temporary_view(inline: Inline) -> None:
    found = inline(
        "WITH orders AS (SELECT id FROM customers)"
        " SELECT known.id FROM orders JOIN known ON orders.id = known.id"
    )
    assert sorted(scans(found)) == ["customers", "customers", "orders_2"]


def test_a_cte_does_not_capture_a_delta_table_of_others(inline: Inline) -> None:
    found = inline(
        "WITH events AS (SELECT id FROM customers)"
        " SELECT e.id FROM events JOIN delta.`/data/events` e ON events.id = e.id"
    )
    assert len(scans(found)) == 2


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id FROM parquet.`/data`", "`/data` is read by Spark, and nobody tracks"),
        ("SELECT id FROM range(3)", "`range` is read by Spark, and nobody tracks its changes"),
    ],
)
def test_what_spark_reads_by_itself_is_refused(inline: Inline, query: str, reason: str) -> None:
    with pytest.raises(NotCompilable, match=reason):
        inline(query)


def test_a_python_function_can_not_be_looked_into(
    project: Callable[[dict[str, str]], Project],
) -> None:
    code = (
        "from pyspark import pipelines as dp\n\n"
        "@dp.materialized_view\ndef busy():\n    return spark.read.table('orders').limit(3)\n"
    )
    declared = project({"all/c.py": code})
    with pytest.raises(NotCompilable, match='the Python function "busy"'):
        inlined(declared, declared.views["busy"])
