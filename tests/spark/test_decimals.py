"""Sums and averages equal Spark's to the last digit, on the first build and after every change.

One row of the table `t` holds a value of each decimal type, so one view covers all types of one
scale or precision. The stored rows must equal the query's rows, and so must their types.
"""

import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from springhouse.errors import LakeError
from springhouse.warehouse import Warehouse

sys.path += [str(Path(__file__).parent)]

from base_table import BaseTable, declaration, refresh

INCREMENTAL = "TBLPROPERTIES ('springhouse.refresh' = 'incremental')"
TYPES = [(p, s) for p in range(1, 39) for s in range(p + 1)]
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
SMALLEST, LARGEST = -(2**63), 2**63 - 1


class ComparedWarehouse:
    """A warehouse with one table, and views that a test compares with their queries."""

    def __init__(self, folder: Path, ddl: str) -> None:
        self.warehouse = Warehouse(folder)
        self.table = BaseTable(self.warehouse, "t", ddl)

    def refresh(self) -> dict[str, str]:
        """Refresh all views, and return the way of refreshing that each view took."""
        found = {}
        for name in self.warehouse.project.views:
            refresh(self.warehouse, name)
            newest = self.warehouse.internals.lake.log(name).newest()
            assert newest is not None
            assert newest.note is not None
            found[name] = newest.note.variant
        return found

    def compare(self) -> None:
        """Check that every view holds the current rows of its query, in the query's types."""
        session = self.warehouse.internals.lake.spark.session()
        session.createDataFrame(self.table.table()).createOrReplaceTempView("t")
        for name, view in self.warehouse.project.views.items():
            asked = session.sql(view.query.text)  # type: ignore[union-attr]
            stored = self.warehouse.internals.lake.open(name)
            kinds = [(f.name, f.dataType) for f in asked.schema.fields]
            assert [(f.name, f.dataType) for f in stored.schema.fields] == kinds, name
            expected = sorted(map(repr, map(tuple, asked.collect())))
            found = sorted(map(repr, map(tuple, stored.read(session).collect())))
            assert found == expected, name
        session.catalog.dropTempView("t")


@pytest.fixture
def warehouse(project: Callable[..., Path]) -> Callable[..., ComparedWarehouse]:
    def open_warehouse(ddl: str, views: dict[str, str], **settings: str) -> ComparedWarehouse:
        text = declaration("t", ddl)
        for name, query in views.items():
            text += f"CREATE MATERIALIZED VIEW {name} {INCREMENTAL} AS {query};\n"
        return ComparedWarehouse(project(text, **settings), ddl)

    return open_warehouse


def value(dice: Random, digits: int, fraction: int) -> Decimal | None:
    """A value of a decimal type: any number, NULL, the smallest step, or close to the limit."""
    kind = dice.randrange(8)
    if kind == 0:
        return None
    if kind == 1:
        unscaled = dice.choice((1, -1))
    else:
        size = 10**digits // 11 if kind == 2 else dice.randrange(10 ** dice.randint(1, digits))
        # An average has four more digits, and fails if too few are left before the point.
        unscaled = dice.choice((1, -1)) * (size if digits <= 32 else size // 10**5)
    return Decimal(unscaled).scaleb(-fraction)


Row = tuple[Any, ...]


def rows(dice: Random, count: int, types: Sequence[tuple[int, int]]) -> list[Row]:
    return [
        (dice.randrange(3), number, *(value(dice, p, s) for p, s in types))
        for number in range(count)
    ]


def column(p: int, s: int) -> str:
    return f"d{p}_{s}"


def test_every_precision_and_scale_is_spark_s_to_the_last_digit(
    warehouse: Callable[..., ComparedWarehouse],
) -> None:
    dice = Random(19)
    ddl = "k INT, n INT, " + ", ".join(f"{column(p, s)} DECIMAL({p},{s})" for p, s in TYPES)
    items = [f"sum({column(*t)}) AS s{column(*t)}" for t in TYPES if t != (38, 38)]
    items += [f"avg({column(*t)}) AS a{column(*t)}" for t in TYPES if t[0] <= 18]
    # A sum that may lose digits is recomputed in full: only types near a limit matter here.
    others = [f"avg({column(*t)}) AS a{column(*t)}" for t in TYPES if t[0] > 18 and sum(t) % 5 == 0]
    views = {
        "added": f"SELECT k, {', '.join(items)} FROM t GROUP BY k",
        "anew": f"SELECT k, sum({column(38, 38)}) AS s, {', '.join(others)} FROM t GROUP BY k",
    }
    # Spark compiles code for a thousand columns for longer than it computes the rows without code.
    opened = warehouse(ddl, views, **_INTERPRETED)
    given = rows(dice, 9, TYPES)
    opened.table.load(given)
    assert opened.refresh() == {"added": "full", "anew": "full"}
    opened.compare()
    more = [(k, n + 100, *rest) for k, n, *rest in rows(dice, 5, TYPES)]
    opened.table.change([given[0], given[4]], more)
    assert opened.refresh() == {"added": "incremental", "anew": "group recompute"}
    opened.compare()


EXPRESSIONS = """
SELECT k, sum(a * b) AS product, sum(a * b) / 3 AS third, avg(a) * 2 AS twice,
  sum(a) + avg(b) AS mixed, sum(DISTINCT a) AS once, avg(DISTINCT a) AS once_average,
  sum(a) FILTER (WHERE n > 2) AS some, sum(CASE WHEN n > 1 THEN a ELSE 0 END) AS chosen,
  sum(w) AS wide, sum(w * 1.5) AS half_more, sum(coalesce(w, a)) AS either,
  sum(a * (1 - b) * (1 + c)) AS price, count(a) AS present, max(w) AS highest
FROM t GROUP BY k"""
CARRIED = """
SELECT k, sum(a * b) AS product, sum(a * b) / 3 AS third, avg(a) * 2 AS twice,
  sum(a) + avg(b) AS mixed, sum(w) AS wide, sum(w * 1.5) AS half_more,
  sum(a * (1 - b) * (1 + c)) AS price, sum(-w) AS negative, sum(a) / avg(b) AS ratio
FROM t GROUP BY k"""
NESTED = """
SELECT p, sum(total) AS total, avg(total) AS mean FROM
  (SELECT k, n % 2 AS p, sum(a * b) AS total FROM t GROUP BY k, n % 2) AS q GROUP BY p"""
ROLLUP = """
SELECT k, n % 2 AS p, sum(w) AS s, avg(a) AS m, sum(a * b) AS t FROM t
GROUP BY ROLLUP (k, n % 2)"""
SETS = "SELECT k, n, sum(w) AS s, avg(w) AS m FROM t GROUP BY GROUPING SETS ((k), (n), ())"
WINDOW = "SELECT k, n, sum(w) OVER (PARTITION BY k) AS s, avg(a) OVER (PARTITION BY k) AS m FROM t"
TOTAL = "SELECT sum(a * b) AS s, avg(a) AS m, avg(w) AS mw, sum(w) AS w, count(*) AS n FROM t"


def test_sums_of_expressions_in_all_kinds_of_groups(
    warehouse: Callable[..., ComparedWarehouse],
) -> None:
    dice = Random(4)
    types = [(18, 6), (18, 6), (5, 4), (38, 20)]
    names = ("a", "b", "c", "w")
    ddl = "k INT, n INT, " + ", ".join(
        f"{name} DECIMAL({p},{s})" for name, (p, s) in zip(names, types, strict=True)
    )
    queries = {
        "expressions": EXPRESSIONS,
        "carried": CARRIED,
        "nested": NESTED,
        "rollup": ROLLUP,
        "sets": SETS,
        "windows": WINDOW,
        "total": TOTAL,
    }
    opened = warehouse(ddl, queries)
    opened.table.load([])
    opened.refresh()
    opened.compare()

    def some(count: int, first: int) -> list[Row]:
        small = [(12, 6), (12, 6), (5, 4), (32, 20)]
        return [(k, n + first, *rest) for k, n, *rest in rows(dice, count, small)]

    # The product of the smallest numbers is 1e-12: it must not become 0.
    tiny = Decimal("0.000001")
    opened.table.append([(7, 1, tiny, 2 * tiny, None, None), *some(8, 10)])
    ways = opened.refresh()
    assert ways["carried"] == "incremental"
    opened.compare()
    held = [tuple(row) for row in opened.table.rows]
    fresh = (7, 2, tiny, tiny, Decimal("0.0001"), tiny)
    opened.table.change([held[2], held[5]], [fresh, *some(3, 40)])
    opened.refresh()
    opened.compare()
    opened.table.change(opened.table.rows[1:], [])
    opened.refresh()
    opened.compare()


def test_integers_at_the_ends_of_their_range(warehouse: Callable[..., ComparedWarehouse]) -> None:
    queries = {
        "sums": "SELECT k, sum(b) AS b, sum(s) AS s, sum(i) AS i, sum(l) AS l FROM t GROUP BY k",
        "averages": "SELECT k, avg(b) AS b, avg(i) AS i, avg(l) AS l FROM t GROUP BY k",
        "total": "SELECT avg(l) AS l, sum(i) AS i, avg(i) AS m FROM t",
    }
    opened = warehouse("k INT, b TINYINT, s SMALLINT, i INT, l BIGINT", queries)
    low = (1, -128, -(2**15), -(2**31), SMALLEST)
    high = (1, 127, 2**15 - 1, 2**31 - 1, LARGEST)
    opened.table.load([low, (1, 1, 1, 1, 0), (2, 0, 0, 0, 2**53 + 1)])
    opened.refresh()
    opened.compare()
    changes: list[tuple[list[Row], list[Row]]] = [
        ([], [high, (2, 1, 1, 1, 1)]),
        ([low], []),  # the smallest integers have no negative
        ([], [(3, None, None, None, None)]),
        ([(2, 0, 0, 0, 2**53 + 1)], [low]),
        ([low, high], [(1, 5, 6, 7, 8)]),
    ]
    for deleted, inserted in changes:
        opened.table.change(deleted, inserted)
        ways = opened.refresh()
        assert ways["sums"] == "incremental"
        opened.compare()


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_sum_that_overflows_does_what_spark_does(
    warehouse: Callable[..., ComparedWarehouse], spark: SparkSession, ansi: str
) -> None:
    query = "SELECT k, sum(w) AS w, sum(l) AS l FROM t GROUP BY k"
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        opened = warehouse("k INT, w DECIMAL(38,10), l BIGINT", {"v": query})
        half = Decimal(6 * 10**37).scaleb(-10)
        opened.table.load([(1, half, 2**62), (2, Decimal(1), 1)])
        opened.refresh()
        opened.compare()
        over = (1, half, 2**62)
        opened.table.append([over])
        if ansi == "true":
            with pytest.raises(LakeError, match=r"(?i)overflow|out of range|cannot be represented"):
                opened.refresh()
        else:
            opened.refresh()
            opened.compare()  # NULL, and a BIGINT that begins again at the other end
            opened.table.append([(1, Decimal(1), 5)])
            opened.refresh()
            opened.compare()
        opened.table.change([over], [])
        opened.refresh()
        opened.compare()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
