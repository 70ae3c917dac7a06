"""A view that plain Spark can compute is never stuck: a failed increment becomes a full refresh."""

import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from springhouse.errors import LakeError
from springhouse.lake.delta.note import Note
from springhouse.warehouse import Warehouse

sys.path += [str(Path(__file__).parent)]

from base_table import BaseTable, declaration, refresh

INCREMENTAL = "TBLPROPERTIES ('springhouse.refresh' = 'incremental')"
DDL = "k INT, i INT, l BIGINT, s STRING, d DECIMAL(10,2), a ARRAY<STRING>, b ARRAY<INT>"
Row = tuple[Any, ...]

ROWS: list[Row] = [
    (1, -(2**31), 5, "x,y", None, ["p", None], [1]),
    (1, 3, None, "z", None, ["q"], None),
    (2, None, 7, None, None, None, []),
]
MORE: list[Row] = [
    (2, 2**31 - 1, 1, "u,v,w", None, [], [4, None]),
    (3, 0, 0, "", None, ["r", "s"], [2]),
]

# Plain Spark answers these queries at every step of the history below.
QUERIES = {
    "share": "SELECT k, count(*) / (SELECT count(*) FROM t) AS share FROM t GROUP BY k",
    "large_share": """SELECT k, share FROM
      (SELECT k, count(*) / (SELECT count(*) FROM t) AS share FROM t GROUP BY k)
      WHERE share > 0.4""",
    "kept_share": """SELECT k FROM t GROUP BY k
      HAVING count(*) / (SELECT count(*) FROM t) > 0.4
      AND count(*) % (SELECT count(*) FROM t) < 9""",
    "share_of_group": """SELECT k, l / (SELECT count(*) FROM t AS o WHERE o.k = t.k) AS share
      FROM t""",
    "summed_share": """SELECT q.k, sum(t.l / q.n) AS s FROM
      (SELECT k, count(*) AS n FROM t GROUP BY k) AS q JOIN t ON t.k = q.k GROUP BY q.k""",
    "total": "SELECT avg(i) AS i, avg(d) AS d, sum(l) AS l, count(*) AS n FROM t",
    "sums": "SELECT k, sum(i) AS i, avg(i) AS m, min(i) AS least FROM t GROUP BY k",
    "arrays": "SELECT k, a, b, split(s, ',') AS words, array(s, 'c') AS both FROM t",
    "grouped": "SELECT a, count(*) AS n, max(i) AS i FROM t GROUP BY a",
    "collected": "SELECT k, sort_array(collect_list(s)) AS all, max(a) AS a FROM t GROUP BY k",
    "structs": "SELECT k, struct(a, s) AS pair, named_struct('x', split(s, ',')) AS x FROM t",
    "hidden_arrays": """SELECT x, count(*) AS n FROM
      (SELECT k, sort_array(collect_list(s)) AS x FROM t GROUP BY k) AS q GROUP BY x""",
    "nested_arrays": """SELECT q.k, q.x, t.i FROM
      (SELECT k, sort_array(collect_set(i)) AS x FROM t GROUP BY k) AS q JOIN t ON t.k = q.k""",
    "mixed_arrays": "SELECT array('a') AS a FROM t UNION ALL SELECT a FROM t",
}


class ComparedWarehouse:
    """A warehouse over `t` and perhaps other tables; a test compares its views with queries."""

    def __init__(self, folder: Path, tables: dict[str, str]) -> None:
        self.warehouse = Warehouse(folder)
        self.others = {name: BaseTable(self.warehouse, name, ddl) for name, ddl in tables.items()}
        self.table = self.others["t"]

    def refresh(self, name: str) -> Note:
        refresh(self.warehouse, name)
        newest = self.warehouse.internals.lake.log(name).newest()
        assert newest is not None
        assert newest.note is not None
        return newest.note

    def compare(self, name: str, *, in_words: bool = False) -> None:
        view = self.warehouse.project.views[name]
        asked = self.warehouse.query(view.query.text)  # type: ignore[union-attr]
        stored = self.warehouse.internals.lake.open(name).read(
            self.warehouse.internals.lake.spark.session()
        )
        if in_words:
            texts = [f"CAST(`{column}` AS STRING)" for column in asked.columns]
            asked, stored = asked.selectExpr(*texts), stored.selectExpr(*texts)
        assert rows(stored.collect()) == rows(asked.collect()), name


def rows(found: Sequence[Any]) -> list[str]:
    return sorted(map(repr, found))


@pytest.fixture
def warehouse(project: Callable[..., Path]) -> Callable[..., ComparedWarehouse]:
    def open_warehouse(ddl: str, views: dict[str, str], **others: str) -> ComparedWarehouse:
        tables = {"t": ddl, **others}
        text = "".join(declaration(name, columns) for name, columns in tables.items())
        for name, query in views.items():
            text += f"CREATE MATERIALIZED VIEW {name} {INCREMENTAL} AS {query};\n"
        return ComparedWarehouse(project(text), tables)

    return open_warehouse


def test_what_plain_spark_can_compute_is_refreshed_by_increments(
    warehouse: Callable[..., ComparedWarehouse],
) -> None:
    opened = warehouse(DDL, QUERIES)
    opened.table.load([])
    # The table starts empty, the smallest integer comes and goes, and the table ends empty.
    steps: list[Callable[[], None]] = [
        lambda: None,
        lambda: opened.table.append(ROWS),
        lambda: opened.table.change([ROWS[0]], MORE),
        lambda: opened.table.change(list(opened.table.rows), []),
    ]
    for number, step in enumerate(steps):
        step()
        for name in QUERIES:
            note = opened.refresh(name)
            assert note.failed is None, (name, note.failed)
            assert (note.variant == "full") == (number == 0), (name, note.why)
            opened.compare(name)


FAR = {
    "far": """SELECT k, date_add(d, 400) AS d9, date_sub(d, 400) AS d0,
      timestampadd(DAY, 400, CAST(d AS TIMESTAMP)) AS t9,
      timestampadd(DAY, 400, CAST(d AS TIMESTAMP_NTZ)) AS n9 FROM t""",
    "far_groups": "SELECT d9, max(t9) AS t9, min(d0) AS d0, count(*) AS n FROM far GROUP BY d9",
    "far_moments": "SELECT t9, n9, count(*) AS n FROM far GROUP BY t9, n9",
    "far_pairs": "SELECT a.k, b.k AS k2, a.t9 FROM far AS a JOIN far AS b ON a.d9 = b.d9",
    "far_ranks": "SELECT k, rank() OVER (PARTITION BY d9 ORDER BY n9 DESC) AS r FROM far",
    "far_top": "SELECT t9, count(*) AS n FROM far GROUP BY t9 ORDER BY t9 DESC LIMIT 2",
    "far_some": "SELECT k, d9 FROM far WHERE d9 IN (SELECT d9 FROM far WHERE k = 1)",
    "far_lists": """SELECT k, sort_array(collect_set(d9)) AS all, max(struct(t9, d0)) AS last
      FROM far GROUP BY k""",
}


def test_dates_that_python_does_not_know(warehouse: Callable[..., ComparedWarehouse]) -> None:
    """Spark supports years before 1 and after 9999."""
    opened = warehouse("k INT, d DATE", FAR)
    days = [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), None]
    some: list[Row] = [(n % 3, days[n % 4]) for n in range(12)]
    opened.table.load([])
    steps: list[Callable[[], None]] = [
        lambda: None,
        lambda: opened.table.append(some),
        lambda: opened.table.change(some[:5], [(1, days[1]), (7, days[0])]),
    ]
    for number, step in enumerate(steps):
        step()
        for name in FAR:
            note = opened.refresh(name)
            assert note.failed is None, (name, note.failed)
            assert (note.variant == "full") == (number == 0), (name, note.why)
            opened.compare(name, in_words=True)


def test_a_statement_that_fails_is_told_remembered_and_tried_again(
    warehouse: Callable[..., ComparedWarehouse],
) -> None:
    # `u` holds the largest integer while `t` is empty, and 2 later, so no pair ever overflows. But
    # the change of `t` meets the old rows of `u`.
    query = "SELECT t.k, u.i FROM t JOIN u ON t.k + u.i >= 1"
    opened = warehouse("k INT", {"v": query}, u="i INT")
    other = opened.others["u"]
    opened.table.load([])
    other.load([(2**31 - 1,)])
    assert opened.refresh("v").variant == "full"
    opened.table.append([(4,)])
    other.change([(2**31 - 1,)], [(2,)])

    found = opened.refresh("v")
    assert (found.variant, found.stateful) == ("full", False)
    assert found.why.startswith("an incremental refresh failed: [ARITHMETIC_OVERFLOW]")
    assert found.failed is not None
    assert found.failed.times == 1
    assert "ARITHMETIC_OVERFLOW" in opened.warehouse.history("v")[0].failure
    opened.compare("v")

    ways = []
    for number in range(5, 10):
        opened.table.append([(number,)])
        found = opened.refresh("v")
        ways.append((found.variant, found.stateful, found.failed is None))
        opened.compare("v")
    remembered = ("full", False, False)
    again, works = ("full", True, False), ("incremental", True, True)
    assert ways == [remembered, remembered, again, works, works]


def test_a_query_that_spark_can_t_compute_fails_with_its_own_error(
    warehouse: Callable[..., ComparedWarehouse],
) -> None:
    opened = warehouse("k INT", {"v": "SELECT 1 / k AS x FROM t"})
    opened.table.load([(1,)])
    opened.refresh("v")
    opened.table.append([(0,)])
    with pytest.raises(LakeError, match="DIVIDE_BY_ZERO"):
        opened.refresh("v")
    opened.table.change([(0,)], [(2,)])
    assert opened.refresh("v").variant == "incremental"
    opened.compare("v")
